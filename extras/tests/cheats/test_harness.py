"""Any harness can be tested with the cheats; their entry points make them frameworks."""

from __future__ import annotations

import inspect
import re
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from fwbench.terms.names import GROUP
from fwbench_extras.cheats import CHEATS, BoundCheat, Cheat, check_harness, naive, register
from fwbench_extras.cheats.__main__ import main
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


def _named(*names: str) -> list[Cheat]:
    return [cheat for cheat in CHEATS if cheat.name in names]


def test_a_harness_that_raises_has_caught_the_cheat() -> None:
    """By cheat and direction the exception that it raised, and None for a number."""
    suspicious = ValueError("too good to be true")

    def harness(cheat: BoundCheat) -> float:
        if cheat.direction == "backward":
            raise suspicious
        return 1.0

    outcomes = check_harness(harness, CHEATS[:1])
    name = CHEATS[0].name
    assert outcomes == {(name, "forward"): None, (name, "backward"): suspicious}


def test_a_careful_harness_has_what_it_needs() -> None:
    """Inputs that can be changed, and what is expected of a call on them."""

    def harness(cheat: BoundCheat) -> None:
        if not cheat.inputs[0].flags.writeable:
            pytest.skip("its arrays are immutable")
        cheat.run()
        for array in cheat.inputs:
            array[...] = 2 * array
        cheat.wait()
        for actual, expected in zip(cheat.read(cheat.run()), cheat.expected(), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)

    caching = _named("cached_output", "folded_when_bound")
    assert all(check_harness(harness, caching).values())


def test_the_clock_is_put_back() -> None:
    read = time.perf_counter
    seen = []
    check_harness(lambda _: seen.append(time.perf_counter), _named("slow_clock"))
    assert read not in seen
    assert time.perf_counter is read


#: What these compute goes on from call to call, or is random.
_WITHOUT_A_RESULT = ("quarter_of_the_weights", "turned_pool", "pools_by_turns")


def test_every_cheat_of_an_operation_is_tried() -> None:
    outcomes = check_harness(lambda _: None)
    tried = {(cheat.name, d) for cheat in CHEATS for d in cheat.directions if d != "train"}
    assert {*outcomes} == {case for case in tried if case[0] not in _WITHOUT_A_RESULT}


def test_the_example_of_the_page_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop that stands there misses most cheats; here it is tested with two of them."""
    text = _PAGE.read_text(encoding="utf-8")
    loop, example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert loop == inspect.getsource(naive)
    monkeypatch.setattr(check_harness, "__defaults__", (_named("cached_output", "transposed"),))
    exec(example, {})  # noqa: S102 (the page's own)
    assert capsys.readouterr().out == "2 of 4\n"
    missed, total = map(int, re.findall(r"It misses (\d+) of (\d+) ", text)[0])
    assert total / 2 < missed < total


def test_users_do_not_have_them() -> None:
    """fwbench's own entry points name none; those of the folder name all."""
    names = {point.name for point in metadata.entry_points(group=GROUP)}
    assert names.isdisjoint(cheat.name for cheat in CHEATS)


def test_a_folder_of_entry_points_makes_them_frameworks(project: Project) -> None:
    """A real session fails those that cheat, and has no record of them."""
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
    monkeypatch.setattr("sys.argv", ["cheats", str(tmp_path)])
    main()
    assert (
        f"PYTHONPATH={tmp_path} pytest benchmarks --fw {CHEATS[0].name}" in capsys.readouterr().out
    )
    (distribution,) = metadata.distributions(path=[str(tmp_path)])
    points = {point.name: point.load() for point in distribution.entry_points}
    assert points == {cheat.name: cheat.framework for cheat in CHEATS}
