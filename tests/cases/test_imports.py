"""The import of a framework: timed, verified and broken down in processes of its own."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench.cases.case import Case
from fwbench.cases.imports import PYTHON, ImportCase, seconds_by_part
from fwbench.errors import WrongResult
from fwbench.gate.cold_start import cold_start_causes
from fwbench.gate.explanation import CauseKind
from fwbench.records.facts import CaseFacts
from fwbench.terms.manifest import Capabilities
from fwbench.testing import FakeFramework
from fwbench.workloads import STARTUP
from fwbench.workloads.gaps import why
from support.fakes import assert_not_recorded, case_of, cell, manifest, recorded

_IMPORT = cell(*STARTUP, size=1)


class Importable(FakeFramework):
    """A framework whose users import a package of a test's, on the clock of the wall."""

    capabilities = Capabilities(imports="slowly", imports_after="import json")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Case]:
    """Writes a package of two submodules, and gives the case of its import."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)

    def write(part: str = "", version: str = "1.2") -> Case:
        files = {
            "__init__": f"from slowly import other, part\n__version__ = {version!r}",
            "other": "import wsgiref",
            "part": f"import time\n{part}",
        }
        for name, text in files.items():
            file = tmp_path / "slowly" / f"{name}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        for name in [name for name in sys.modules if name.startswith("slowly")]:
            monkeypatch.delitem(sys.modules, name)
        importlib.import_module("slowly")
        clock: Any = time.perf_counter
        framework = Importable(asynchronous=False, clock=clock)
        return case_of(_IMPORT, framework, 1e-9, ImportCase, min_rounds=2, max_time=1e-9)

    yield write  # type: ignore[misc]
    for name in [name for name in sys.modules if name.startswith("slowly")]:
        monkeypatch.delitem(sys.modules, name)


def test_an_import_is_timed_in_processes_of_its_own(package: Callable[..., Case]) -> None:
    """Without the interpreter's start; none of the processes is left."""
    before = psutil.Process().children()
    facts = CaseFacts.checked(recorded(package("time.sleep(0.05)")))
    assert facts.completion_s is not None
    assert 0.05 <= facts.completion_s < 0.5
    assert facts.first_call_in_process_s is not None
    assert (facts.imported_bytes or 0) > 0
    parts = facts.import_parts or {}
    assert {"slowly", "slowly.other", "slowly.part", PYTHON} == {*parts}
    assert next(iter(parts)) == "slowly.part"
    assert (facts.imported_modules or 0) >= len(parts)
    assert psutil.Process().children() == before


def test_another_installation_has_no_record(package: Callable[..., Case]) -> None:
    case = package(version="1.3")
    with pytest.raises(WrongResult, match=r"imports slowly 1\.3 from .*, and this one has 1\.2"):
        case.measure()
    assert_not_recorded(case)


def test_an_import_that_fails_says_how(package: Callable[..., Case], tmp_path: Path) -> None:
    case, before = package(), psutil.Process().children()
    (tmp_path / "slowly" / "part.py").write_text("raise OSError('no such driver')")
    with pytest.raises(WrongResult, match=r"(?s)to import slowly ended with exit .*no such driver"):
        case.measure()
    assert_not_recorded(case)
    assert psutil.Process().children() == before


def test_parts_are_submodules_packages_and_python() -> None:
    """Times of their own, which add up; what the interpreter imports to start is not among them."""
    trace = """
import time: self [us] | cumulative | imported package
import time:      1000 |       1000 |   encodings
fwbench imports
import time:        20 |         20 |       torch._C.more
import time:        10 |         30 |     torch._C
a warning of somebody's
import time:       300 |        300 |     numpy.core
import time:       400 |        700 |   numpy
import time:         5 |          5 |   json.decoder
import time:        50 |        785 | torch
"""
    assert seconds_by_part(trace, "torch") == pytest.approx(
        {"torch._C": 30e-6, "numpy": 700e-6, PYTHON: 5e-6, "torch": 50e-6}
    )


@pytest.mark.parametrize(
    ("changes", "imports", "gap"),
    [
        ({}, "slowly", None),
        ({}, "", "the adapter of fake does not name the module that users import (`imports`)"),
        (
            {"dtype": "float64"},
            "slowly",
            "an import is of no dtype and on no GPU, and float64 on cpu is asked for",
        ),
    ],
)
def test_a_gap_of_an_import_says_why(changes: Any, imports: str, gap: str | None) -> None:
    assert why(cell(*STARTUP, size=1, **changes), manifest(imports=imports)) == gap


def test_a_slower_import_is_explained_by_its_submodule(package: Callable[..., Case]) -> None:
    """The one that sleeps, or computes."""
    base = CaseFacts.checked(recorded(package("time.sleep(0.01)")))
    for slower in (
        "time.sleep(0.1)",
        "e = time.perf_counter() + 0.1\nwhile time.perf_counter() < e: 0",
    ):
        contender = CaseFacts.checked(recorded(package(slower)))
        causes, gaps = cold_start_causes(base, contender)
        largest = next(cause for cause in causes if cause.kind is CauseKind.FUNCTIONS)
        assert largest.text.startswith("slowly.part: ")
        change_s = (contender.completion_s or 0.0) - (base.completion_s or 0.0)
        assert largest.time_s == pytest.approx(change_s, rel=0.3)
        assert gaps == []


def _first_call(seconds: float, **facts: Any) -> CaseFacts:
    return CaseFacts(execution="compile", first_call_s=seconds, completion_s=1e-3, **facts)


def test_a_first_call_that_compiles_twice_is_explained_by_its_phase() -> None:
    """It is no part of the calls that are timed, and holds no seconds of them."""
    base = _first_call(
        1.0, first_call_phases={"trace": 0.2, "compile": 0.7}, first_call_compilations=1
    )
    contender = _first_call(
        1.8, first_call_phases={"trace": 0.25, "compile": 1.4}, first_call_compilations=2
    )
    causes, gaps = cold_start_causes(base, contender)
    assert [cause.text for cause in causes] == [
        "first call: 1 s -> 1.8 s",
        "compilations of the first call: 1 -> 2",
        "first call, compile: 700 ms -> 1.4 s",
        "first call, trace: 200 ms -> 250 ms",
    ]
    assert {cause.time_s for cause in causes} == {None}
    assert gaps == []


def test_a_session_that_is_optimised_for_longer_is_explained_by_its_phase() -> None:
    """ONNX Runtime compiles when work is bound; a moment is no matter."""
    base, contender, moment = (
        _first_call(0.1, bind_phases={"load": 1e-3, "optimise": optimise_s})
        for optimise_s in (20e-3, 60e-3, 20.5e-3)
    )
    causes, gaps = cold_start_causes(base, contender)
    assert [cause.text for cause in causes] == [
        "compiled when bound: 21 ms -> 61 ms",
        "bind, optimise: 20 ms -> 60 ms",
    ]
    assert gaps == []
    assert cold_start_causes(base, moment) == ([], [])


def test_what_is_not_known_of_a_cold_start_is_said() -> None:
    """And what has not changed is no cause; nor is the first call of a process that had others."""
    assert cold_start_causes(_first_call(1.0), _first_call(1.05)) == ([], [])
    late = CaseFacts(first_call_in_process_s=9.0, first_in_process=False)
    assert cold_start_causes(_first_call(1.0), late) == ([], [])
    eager = _first_call(1.0) | CaseFacts(execution="eager")
    assert cold_start_causes(eager, _first_call(2.0)) == ([], [])
    (slower,), gaps = cold_start_causes(_first_call(1.0), _first_call(2.0))
    assert gaps == ["first call by phase: none told by its framework, compile"]
    known = _first_call(2.0, first_call_phases={"trace": 1.0})
    assert cold_start_causes(_first_call(1.0), known)[1] == [
        "first call by phase: the base has none"
    ]
    assert (slower.text, slower.time_s) == ("first call: 1 s -> 2 s", None)
    imported = CaseFacts(imported_modules=3, completion_s=1.0, imported_bytes=2**20)
    causes, gaps = cold_start_causes(
        imported | CaseFacts(import_parts={"torch": 1.0}),
        imported | CaseFacts(imported_modules=4, imported_bytes=2**21),
    )
    assert [cause.text for cause in causes] == [
        "3 modules imported -> 4",
        "memory of the import: 1 MiB -> 2 MiB",
    ]
    assert gaps == ["import by part: the contender has none"]
