"""The section of a race: every contestant of every group, and why a group is open."""

from __future__ import annotations

from typing import Any

from fwbench.records.session_facts import SessionFacts
from fwbench.report import writers
from fwbench.report.model import Run
from fwbench.report.sections import verdicts
from support.histories import RACE, budget


def _run(**facts: Any) -> Run:
    return Run(0, "run.json", [], SessionFacts(**facts))


def test_a_section_has_every_contestant() -> None:
    (section,) = verdicts.sections([_run(race=RACE, budget=budget())], ["run.json"])
    assert section.title == "Race"
    assert section.notes[0].startswith("3 groups: 1 fastest, 1 tie, 1 undecided")
    assert section.notes[1] == "12 launches in 4 min 50 s of 5 min"
    cells = [[cell.text for cell in row.cells] for row in section.rows]
    assert cells[0] == [
        *("gemm cpu forward float32 256", "fastest", "torch eager", "12.3 us", "", "12", "")
    ]
    assert cells[1][1:] == [
        *("slower", "numpy eager", "13.8 us", "+12.2 %", "12", "slower than torch eager")
    ]
    assert cells[3][1:] == ["lost", "jax jit", "", "(failed)", "0", "failed"]
    assert [row[1] for row in cells[4:]] == ["tied", "tied", "open", "open"]
    assert cells[6][6].startswith("about 14 more launches (2 min 6 s) would decide it")
    assert section.rows[0].keys == {"framework": "torch"}


def test_runs_without_a_race_have_no_section() -> None:
    runs = [_run(), _run(race=RACE)]
    assert [s.title for s in verdicts.sections(runs, ["a", "b"])] == ["Race (b)"]


def test_a_race_is_in_page_and_markdown() -> None:
    run = _run(race=RACE)
    for text in (writers.html([run]), writers.markdown([run])):
        assert "Race" in text
        assert "gemm cpu forward float32 256" in text
        assert "would decide it" in text
