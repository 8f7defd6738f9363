"""Any harness can be held against the liars; page and entry points are those of the classes."""

from __future__ import annotations

import inspect
import re
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from fwbench.frameworks.registry import GROUP
from fwbench_extras.cheats import LIARS, Exhibit, hold_against, naive, register
from fwbench_extras.cheats.remembering import CachedOutput
from fwbench_extras.cheats.results import Transposed
from support.projects import Project

_PAGE = Path(__file__).parents[3] / "docs" / "cheats.md"

_CASES = """
import pytest
from fwbench.workloads import gemm, mlp

@pytest.mark.fwbench(gemm, sizes=(32,), frameworks=("cached_output", "defeat_device"))
def test_gemm(case):
    case.measure()

@pytest.mark.fwbench(mlp.step, sizes=(8,), frameworks=("every_second_update",))
def test_step(case):
    case.measure()
"""


# Any harness


def test_a_harness_that_raises_has_caught_the_liar() -> None:
    """By liar and direction there is what it raised, and None for a number."""
    suspicious = ValueError("too good to be true")

    def harness(exhibit: Exhibit) -> float:
        if exhibit.direction == "backward":
            raise suspicious
        return 1.0

    outcomes = hold_against(harness, LIARS[:1])
    name = LIARS[0].name
    assert outcomes == {(name, "forward"): None, (name, "backward"): suspicious}


def test_a_careful_harness_has_what_it_needs() -> None:
    """Inputs that can be changed, and what is expected of a call on them."""

    def harness(exhibit: Exhibit) -> None:
        if not exhibit.inputs[0].flags.writeable:
            pytest.skip("its arrays are immutable")
        exhibit.run()
        for array in exhibit.inputs:
            array[...] = 2 * array
        exhibit.wait()
        for actual, expected in zip(exhibit.read(exhibit.run()), exhibit.expected(), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)

    caching = [liar for liar in LIARS if liar.name in ("cached_output", "folded_when_bound")]
    assert all(hold_against(harness, caching).values())


def test_the_clock_is_put_back() -> None:
    """One of the liars replaces it."""
    read = time.perf_counter
    seen = []
    slow = [liar for liar in LIARS if liar.name == "slow_clock"]
    hold_against(lambda exhibit: seen.append(time.perf_counter), slow)
    assert read not in seen
    assert time.perf_counter is read


def test_every_lie_about_an_operation_is_exhibited() -> None:
    """In every direction; training is fwbench's own idea of a workload."""
    shown = hold_against(lambda exhibit: None)
    lies = {(liar.name, d) for liar in LIARS for d in liar.directions if d != "train"}
    assert {*shown} == lies


# The page


def test_the_example_of_the_page_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop that stands there misses most liars; here it is held against two of them."""
    text = _PAGE.read_text(encoding="utf-8")
    loop, example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert loop == inspect.getsource(naive)
    monkeypatch.setattr(hold_against, "__defaults__", ([CachedOutput, Transposed],))
    exec(example, {})  # noqa: S102 (the page's own)
    assert capsys.readouterr().out == "2 of 4\n"
    missed, shown = map(int, re.findall(r"It misses (\d+) of (\d+) ", text)[0])
    assert shown / 2 < missed < shown


# As frameworks


def test_users_do_not_have_them() -> None:
    """fwbench's own entry points name none; those of the folder name all."""
    names = {point.name for point in metadata.entry_points(group=GROUP)}
    assert names.isdisjoint(liar.name for liar in LIARS)


def test_a_folder_of_entry_points_makes_them_frameworks(project: Project) -> None:
    """A real session fails those that lie, and has no record of them."""
    register(project.packages)
    project.write("test_it.py", _CASES)
    result, records = project.measure("--junitxml=junit.xml", fw=None)
    counts = result.parseoutcomes()
    assert (counts["failed"], counts["passed"]) == (2, 1)
    assert [*records] == ["gemm-defeat_device-cpu-eager-forward-float32-32"]
    outcomes = project.outcomes()
    caught = {name: outcome.text for name, outcome in outcomes.items() if outcome.kind == "failure"}
    assert {*caught} == {
        "test_gemm[gemm-cached_output-cpu-eager-forward-float32-32]",
        "test_step[mlp_step-every_second_update-cpu-eager-train-float32-8]",
    }
    kinds = {re.search(r"Wrong\w+: ", text)[0] for text in caught.values()}
    assert kinds == {"WrongResult: ", "WrongTraining: "}


def test_the_command_writes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says how to use it."""
    from fwbench_extras.cheats.__main__ import main

    monkeypatch.setattr("sys.argv", ["liars", str(tmp_path)])
    main()
    assert (
        f"PYTHONPATH={tmp_path} pytest benchmarks --fw {LIARS[0].name}" in capsys.readouterr().out
    )
    (found,) = metadata.distributions(path=[str(tmp_path)])
    points = {point.name: point.load() for point in found.entry_points}
    assert points == {liar.name: liar for liar in LIARS}
