"""Ways of calling frameworks: others are measured, and slower, or there is a reason."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench_extras.idioms import page as idioms
from fwbench_extras.idioms.table import Idiom
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


def test_the_ratio_of_two_ways_is_the_median_of_three_binds(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = SimpleNamespace(run=list, verify=lambda _: None)
    turns = iter([[[1.0, 1.0]], [[3.0, 1.0]], [[2.0, 1.0]]])
    monkeypatch.setattr(harness, "bind", lambda *_: work)
    monkeypatch.setattr(harness, "_bound", lambda *_: work)
    monkeypatch.setattr(harness, "_in_turns", lambda *_: next(turns))
    (row,) = harness._compared(
        SimpleNamespace(cell=None, framework=None), Idiom("called", "", {"other": "path"})
    )
    assert (row["ratio"], row["called_us"]) == (2.0, 2e6)


def test_a_framework_is_recorded_before_the_next_one_is_measured(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(framework: str, _select: str) -> list[dict[str, str]]:
        if framework == "torch":
            raise SystemExit("torch: exit status 1")
        return [dict.fromkeys(harness.COLUMNS, "") | {"framework": framework}]

    monkeypatch.setattr(harness, "RECORDED", tmp_path / "idioms.csv")
    monkeypatch.setattr(harness, "_measured", measured)
    monkeypatch.setattr("sys.argv", ["idioms.py", "--frameworks=numpy,torch", "--record=1"])
    with pytest.raises(SystemExit, match="torch"):
        harness.main()
    assert (tmp_path / "idioms.csv").read_text().splitlines()[1].startswith("numpy,")
