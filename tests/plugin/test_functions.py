"""Functions without a reference in sessions: their frameworks, names, rounds and results."""

import importlib.util

import pytest

from support.projects import Project
from support.real_training import facts_of

_DECLARED = """
import fwbench
import numpy as np
import pytest
from fwbench import Input

def ordered(x):
    x.sort()

def tripled(x):
    return 3 * x

by = {"inputs": Input("batch"), "sizes": 100}
"""

_TEST = """
@pytest.mark.fwbench(*functions)
def test_it(case):
    case.measure()
"""


def _file(*functions: str) -> str:
    return f"{_DECLARED}functions = [{', '.join(functions)}]\n{_TEST}"


_ORDERED = 'fwbench.function(ordered, changes="x", **by)'
_TRIPLED = "fwbench.function(tripled, **by)"


def test_functions_are_measured_in_the_frameworks_that_they_are_given_for(project: Project) -> None:
    """No other framework is asked; a call that changes its argument is a round of its own."""
    project.write("test_it.py", _file(_ORDERED, _TRIPLED))
    result, records = project.measure(fw=None)
    result.assert_outcomes(passed=2)
    assert [name.partition("-")[0] for name in records] == ["ordered", "tripled"]
    entries = {name.partition("-")[0]: entry for name, entry in records.items()}
    assert entries["ordered"]["stats"]["iterations"] == 1
    assert entries["tripled"]["stats"]["iterations"] > 1
    for entry in entries.values():
        assert facts_of(entry)["verified_against"] == "its own plain call"


def test_a_function_in_a_framework_that_it_is_not_given_for(project: Project) -> None:
    """Asked for by name it is a gap, and there is nothing else in its place."""
    project.write("test_it.py", _file(_TRIPLED.replace("(tripled", '({"torch": tripled}')))
    result = project.run("-rs", fw="numpy")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*: the declaration of tripled has no numpy implementation"])


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        (
            (_TRIPLED, _TRIPLED.replace("tripled", 'lambda x: x, name="tripled"')),
            "another function",
        ),
        ((_TRIPLED.replace("**by", 'name="tanh", **by'),), "a workload of fwbench's"),
    ],
)
def test_names_that_clash_are_refused(
    project: Project, functions: tuple[str, ...], said: str
) -> None:
    tests = "".join(
        _TEST.replace("*functions", f"functions[{place}]").replace("_it", f"_{place}")
        for place in range(len(functions))
    )
    project.write("test_it.py", _file(*functions).replace(_TEST, tests))
    result = project.run(fw="numpy")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*test_it.py:*has the name of {said}*give it another: *name=*"])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_frameworks_are_held_against_each_other(project: Project) -> None:
    """Whichever comes second fails, and names the other one."""
    functions = [
        f'fwbench.function({{"numpy": tripled, "torch": {other}}}, name="{name}", **by)'
        for name, other in (("same", "tripled"), ("off", "lambda x: 3.001 * x"))
    ]
    project.write("test_it.py", _file(*functions))
    result = project.run("--benchmark-disable", "--fw-threads=1", fw="numpy,torch")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.re_match_lines([r".*(numpy and torch|torch and numpy) do not compute the same: "])
