"""Plain tests and NumPy's cases are called again after their timing: where their time goes."""

from __future__ import annotations

import pytest

from fwbench.gate.functions import function_causes
from fwbench.records import stored
from fwbench.records.measurement import Measurement
from support.projects import Project, measuring

_TEST = """
import total

def test_it(benchmark):
    assert benchmark(total.total, list(range(2000))) == 1999000
"""

_FAST = "def total(numbers):\n    return sum(numbers)\n"
_LOOP = """
def total(numbers):
    result = 0
    for number in numbers:
        result = result + number
    return result
"""
_ALLOCATING = """
def grown(before, number):
    return [*before[-300:], number]

def total(numbers):
    kept = []
    for number in numbers:
        kept = grown(kept, number)
    return sum(numbers)
"""

_PREPARED = """
import time

made = []

def test_it(benchmark):
    benchmark.pedantic(
        lambda numbers: (numbers.pop(), time.sleep(0.01)),
        setup=lambda: (([1],), {}),
        teardown=made.append,
        rounds=3,
    )
    with open("calls", "a") as file:
        print(len(made), file=file)
"""


def _measured(project: Project, test: str, *arguments: str) -> Measurement:
    """The record of the only test of a session, which must end well."""
    project.write("test_it.py", test)
    result = project.run("--benchmark-json=it.json", "--fw-profile", *arguments, fw=None)
    result.assert_outcomes(passed=1)
    path = project.path / "it.json"
    (record,) = stored.from_json("it.json", stored.parse(path)).records
    return record


@pytest.mark.serial
def test_planted_causes_are_found_and_named_first(project: Project) -> None:
    """A loop in place of a call, and an allocation in a loop; equal code is said to be equal."""
    sides = []
    for source in (_FAST, _FAST, _LOOP, _ALLOCATING):
        project.write("total.py", source)
        sides.append(_measured(project, _TEST, "--benchmark-max-time=0.2"))
    fast, same, loop, allocating = sides
    assert function_causes(fast, loop)[0][0].text.startswith("total() in total.py: ")
    assert function_causes(fast, allocating)[0][0].text.startswith("grown() in total.py: 0 s -> ")
    causes, notes = function_causes(fast, same, (fast.median_s, fast.median_s))
    assert causes == []
    assert notes[0].startswith("functions: no difference above ")


def test_calls_are_prepared_as_they_were(project: Project) -> None:
    """Not more often than the test has asked for; launches that follow only measure."""
    sampled = _measured(project, _PREPARED, "--fw-launches=2").facts.sampled
    assert sampled is not None
    assert sampled.calls == 3
    assert project.lines("calls") == ["6", "3"]


def test_launches_that_follow_profile_nothing_whoever_asks_for_it(project: Project) -> None:
    """Here the project's own settings, which every session has."""
    project.write("pytest.ini", "[pytest]\naddopts = --fw-profile --fw-launches=3\n")
    assert _measured(project, _PREPARED).facts.sampled is not None
    assert project.lines("calls") == ["6", "3", "3"]


def test_a_call_that_cannot_be_made_again_is_a_gap(project: Project) -> None:
    """The test passes, and its times stand."""
    test = "def test_it(benchmark):\n    benchmark.pedantic([1, 2, 3].pop, rounds=3)\n"
    record = _measured(project, test)
    why = "calls could not be made again under a profiler: IndexError: pop from empty list"
    assert record.facts.sampled == {"gap": why}
    assert record.number == 3


def test_cases_of_numpy_are_sampled(project: Project) -> None:
    """In a process of their own, as other probes are."""
    project.write("test_it.py", measuring("double, sizes=(4,)"))
    (facts,) = project.facts("--fw-profile").values()
    assert "profile" not in facts
    assert any("declared.py:" in stack for stack in facts["sampled"]["stacks"])
