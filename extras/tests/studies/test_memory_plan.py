"""``fwbench report --memory-plan``: what MXNet's planner saves, next to its paper."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.report.model import Run
from fwbench.report.section import Section
from fwbench_extras.studies import memory_plan
from support.documents import ROOT, read
from support.launched_runs import write
from support.reports import case, run_of
from support.section_parts import rows

_USAGE_ERROR = 2
_MEBIBYTE = 2**20


def _memory(none: int, in_place: int, co_share: int, both: int) -> dict[str, Any]:
    sizes = {"none": none, "in place": in_place, "co-share": co_share, "both": both}
    plan = {name: size * _MEBIBYTE for name, size in sizes.items()}
    return {"planned_bytes": plan["both"], "planned_by_strategy": plan}


def _step(**facts: Any) -> dict[str, Any]:
    return case(
        "googlenet_step", "mxnet", execution="hybridize", direction="train", size=16, **facts
    )


#: GoogLeNet, 16 pictures of 224 x 224.
_PLANNED = {"memory": _memory(1522, 1013, 579, 502), "forward_memory": _memory(642, 445, 142, 102)}


def _only(run: Run) -> Section:
    (section,) = memory_plan.sections([run])
    return section


def test_strategies_are_listed_and_drawn() -> None:
    """In the paper's order, with their origin and with what is saved; the paper's figures below."""
    section = _only(run_of(_step(**_PLANNED), case()))
    assert section.title == "MXNet's memory plan: googlenet_step 16 float32, mxnet hybridize"
    first, _, co_share, last = rows(section)
    assert first == {
        "shared": "none",
        "forward": "642 MiB",
        "none over it": "1.0x",
        "training": "1,522 MiB",
        "origin": "computed from the log of MXNet's plan",
    }
    assert "computed" in co_share["origin"]
    assert (last["shared"], last["forward"], last["training"]) == ("both", "102 MiB", "502 MiB")
    assert [row.cells[2].text for row in section.rows] == ["1.0x", "1.4x", "4.5x", "6.3x"]
    assert [row.cells[4].text for row in section.rows] == ["1.0x", "1.5x", "2.6x", "3.0x"]
    assert "MXNET_EXEC_ENABLE_INPLACE does nothing" in section.notes[0]
    assert section.notes[1] == (
        "None over both: forward 6.3x (the paper: 4x), training 3.0x (the paper: 2x)."
    )
    (chart,) = section.charts
    assert "both, planned, forward: 102 MiB; both, planned, training: 502 MiB" in chart.text
    assert "none, computed, forward: 642 MiB" in chart.text


def test_inference_has_a_forward_pass_alone() -> None:
    inference = case("lenet_inference", "mxnet", execution="hybridize", memory=_memory(4, 3, 2, 1))
    section = _only(run_of(inference))
    assert list(section.columns) == ["shared", "forward", "none over it", "origin"]


def test_a_network_that_was_measured_twice_has_two_sections() -> None:
    run = run_of(_step(**_PLANNED), _step(**_PLANNED))
    assert [section.title.rpartition(", ")[2] for section in memory_plan.sections([run])] == [
        "mxnet hybridize",
        "mxnet hybridize #2",
    ]


def test_runs_without_a_plan_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case(), _step(memory={"gap": "it died"}))
    assert cli.main(["report", "run.json", "--memory-plan", "-o", "x.html"]) == _USAGE_ERROR
    output = capsys.readouterr().err
    assert "have none" in output
    assert "--fw mxnet --fw-execution hybridize --fw-memory" in output
    assert not (tmp_path / "x.html").exists()


def test_the_figure_of_the_page_shows_its_table() -> None:
    spec = importlib.util.spec_from_file_location("plans", ROOT / "scripts" / "memory_plan.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = read("docs/figures.md")
    plans = script.shown(page)
    assert script.figure(plans) == read("docs/memory-plan.svg")
    for row in script.table(plans):
        assert row in page
