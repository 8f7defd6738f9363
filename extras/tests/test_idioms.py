"""Ways of calling frameworks: others are measured, and slower, or there is a reason."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fwbench.cases.case import bind
from fwbench.cases.work import Work
from fwbench.errors import VerificationError
from fwbench.frameworks.layout import Layout
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.frameworks.table import Call, Laid
from fwbench.workloads import OPERATIONS
from fwbench.workloads.cell import Cell
from fwbench_extras.idioms import idioms_of
from fwbench_extras.idioms import page as idioms
from fwbench_extras.idioms.table import Idiom, another_way, beside, by
from support.documents import ROOT


def test_every_alternative_is_measured() -> None:
    """If this fails: make idioms ARGS='--select OPERATION --frameworks FRAMEWORK'."""
    declared = {
        (*row, other): idiom.called
        for row, idiom in idioms.declared().items()
        for other in idiom.alternatives
    }
    assert {way: found.called for way, found in idioms.measured().items()} == declared


def test_a_way_that_is_slower_than_another_has_a_reason() -> None:
    assert idioms.unexplained() == []


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script that measures ways."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "harness"))
    return importlib.import_module("idioms")


@pytest.mark.parametrize("called_s", [1.0, 1e-5])
def test_the_ratio_of_two_ways_is_the_median_of_three_binds(
    harness: Any, monkeypatch: pytest.MonkeyPatch, called_s: float
) -> None:
    """However small: the page has means of logarithms."""
    work = SimpleNamespace(run=list, verify=lambda _: None)
    turns = iter([[[called_s, 1.0]], [[3 * called_s, 1.0]], [[2 * called_s, 1.0]]])
    monkeypatch.setattr(harness, "bind", lambda *_: work)
    monkeypatch.setattr(harness, "_bound", lambda *_: work)
    monkeypatch.setattr(harness, "_in_turns", lambda *_: next(turns))
    (row,) = harness._compared(
        SimpleNamespace(cell=None, framework=None), Idiom("called", "", {"other": "path"})
    )
    assert (row["ratio"], row["called_us"]) == (2 * called_s, 2e6 * called_s)


@pytest.mark.parametrize(("call_s", "rounds"), [(1e-3, 7), (0.5, 1)])
def test_long_calls_take_fewer_turns(
    harness: Any, monkeypatch: pytest.MonkeyPatch, call_s: float, rounds: int
) -> None:
    monkeypatch.setattr(harness, "_visit", lambda *_: call_s)
    framework = SimpleNamespace(reads_stack=False, waiter=lambda _: None)
    case = SimpleNamespace(framework=framework, cell=SimpleNamespace(device="cpu"))
    works = [SimpleNamespace(run=list)] * 2
    assert harness._in_turns(case, works) == [[call_s] * 2] * rounds


def test_an_operation_is_recorded_before_the_next_one_is_measured(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another failure takes nothing away from it."""

    def measured(framework: str, _select: str) -> Iterator[list[dict[str, str]]]:
        yield [dict.fromkeys(harness.COLUMNS, "") | {"framework": framework}]
        if framework == "torch":
            raise SystemExit("torch: exit status 1")

    monkeypatch.setattr(harness, "RECORDED", tmp_path / "idioms.csv")
    monkeypatch.setattr(harness, "_measured", measured)
    monkeypatch.setattr("sys.argv", ["idioms.py", "--frameworks=numpy,torch", "--record=1"])
    with pytest.raises(SystemExit, match="torch"):
        harness.main()
    lines = (tmp_path / "idioms.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == ["numpy", "torch"]


def test_records_of_a_session_that_dies(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are given as the journal has them, and then the failure is."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID"):  # what it has is no part of one
        monkeypatch.delenv(name, raising=False)
    suite = tmp_path / "test_crash.py"
    suite.write_text(
        "import os, signal, pytest\n"
        "from fwbench.workloads import OPERATIONS\n"
        "@pytest.mark.fwbench(*OPERATIONS)\n"
        "def test_measured(case): case.measure()\n"
        "def test_killed(): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    options = ("-pno:randomly", "-k=noop or killed", "--fw=numpy", "--fw-family=all", "--fw-size=8")
    records = harness.bounds.stream(tmp_path, str(suite), *options)
    assert next(records)["extra_info"]["fwbench"]["workload"] == "noop"
    with pytest.raises(SystemExit, match="exit status -9"):
        next(records)


_NUMPY = idioms_of("numpy")


def _bound(operation: str, framework: NumPy, entry: Any = None) -> Work:
    """The work of an operation at its smallest size, by another way if there is one."""
    workload = next(each for each in OPERATIONS if each.name == operation)
    if entry is not None:
        with another_way(framework, workload, entry):
            return _bound(operation, framework)
    cell = Cell(workload, "numpy", "cpu", "eager", "forward", "float32", workload.smallest)
    return bind(cell, framework)


@pytest.mark.parametrize("operation", _NUMPY)
def test_alternatives_compute_the_operation(operation: str) -> None:
    """Another way is no alternative if its result is wrong."""
    for entry in _NUMPY[operation].alternatives.values():
        work = _bound(operation, NumPy(), entry)
        work.verify(work.run())


@pytest.mark.parametrize(
    ("operation", "entry"), [("negative", lambda np: abs), ("from_list", lambda *_: np.negative)]
)
def test_another_way_is_what_is_bound(operation: str, entry: Any) -> None:
    """So a wrong one is noticed; and the framework is as it was afterwards."""
    framework = NumPy()
    work = _bound(operation, framework, entry)
    with pytest.raises(VerificationError):
        work.verify(work.run())
    work = _bound(operation, framework)
    work.verify(work.run())


def test_idioms_of_a_table() -> None:
    """Ways are named by the paths that are called, and have the reasons that are given."""
    entries = {"relu": "nn.relu", "sort": Laid(Call("sort", axis=1), Layout()), "silu": by(abs)}
    others = {name: {"another": "other"} for name in entries}
    idioms = beside(entries, "its layers", others, {"sort": "stable"})
    assert [idiom.called for idiom in idioms.values()] == ["nn.relu", "sort", "silu"]
    assert [idiom.accepted for idiom in idioms.values()] == ["", "stable", ""]
