"""Races and budgets: who won, what is open, what that would take."""

from typing import Any

import pytest

from fwbench.records.session_facts import SessionFacts, StoredRace
from fwbench.report import races, writers
from fwbench.report.model import Run
from fwbench.report.sections import verdicts as race_sections
from support.histories import OPEN, RACE, TIED, WON, budget, contestant, group, unsettled
from support.tables import tabled

WIDE = 400


def test_a_race_begins_with_what_is_open() -> None:
    assert races.race_lines(RACE, WIDE) == [
        (
            "3 groups: 1 fastest, 1 tie, 1 undecided "
            "(a verdict is wrong with a probability of 1% at most)"
        ),
        "fastest: torch eager in 1",
        (
            "sum cpu forward float32 100: undecided: numpy eager 2 us; torch eager +5.0 %: about "
            "14 more launches (2 min 6 s) would decide it; other processes disturbed 4 of 12 "
            "launches"
        ),
        "exp cpu forward float32 100: tie within 3%: numpy eager and torch eager, 1 us",
        (
            "gemm cpu forward float32 256: fastest: torch eager 12.3 us; numpy eager +12.2 %; "
            "mxnet eager 4.9x"
        ),
    ]


def test_differences_that_are_not_those_of_the_times_are_explained() -> None:
    """On the terminal, on the page and in Markdown; where they are, nothing is said."""
    note = "the difference is not that of the times shown"
    rivals = [contestant("a", "first", 1.0), contestant("b", "slower", 2.0, behind=0.5)]
    race = StoredRace(level=0.01, groups=[group("gemm", "fastest", *rivals)])
    assert note in races.race_lines(race, WIDE)[-1]
    run = _run(race=race)
    assert all(note in text for text in (writers.html([run]), writers.markdown([run])))
    assert races.paired(RACE.groups) == []


@pytest.mark.parametrize("width", [20, 80, 100])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    lines = races.race_lines(RACE, width) + races.budget_lines(budget(), width)
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("  ") == (width <= 80)


def test_many_groups_are_not_all_shown() -> None:
    many = StoredRace(level=0.01, groups=[WON] * 38 + [TIED, OPEN])
    lines = races.race_lines(many, WIDE)
    assert lines[-1] == "38 more groups: -v shows all"
    assert len(lines) == 5
    assert len(races.race_lines(many, WIDE, every=True)) == 42
    unlucky = StoredRace(level=0.01, groups=[OPEN] * 40)
    assert races.race_lines(unlucky, WIDE)[-1] == "28 more groups: -v shows all"


def test_a_race_of_nobody_says_why() -> None:
    (line,) = races.race_lines(StoredRace(level=0.01, groups=[]), WIDE)
    assert line.startswith("no contestant has a rival: those with the same work did it in diff")


@tabled
def test_an_undecided_group_says_why(
    contestants: tuple[Any, ...], why: str, more_than: int | None
) -> None:
    asked = [contestant(*of, **more) for *of, more in contestants]
    more = {} if more_than is None else {"more_than": more_than}
    assert races.why_undecided(group("gemm", "undecided", *asked, **more)) == why


@pytest.mark.parametrize(
    ("behind", "message"),
    [(None, "(failed)"), (0.122, "+12.2 %"), (3.9, "4.9x"), (1999.0, "2,000x")],
)
def test_a_distance_is_a_share_or_a_factor(behind: float | None, message: str) -> None:
    assert races.behind(contestant("a", "slower", 1.0, behind=behind, why="failed")) == message


def test_names_from_elsewhere_are_harmless() -> None:
    bad = group("gemm\x1b[2J", "tie", contestant("a\x07", "tied", 1.0))
    text = "".join(races.race_lines(StoredRace(level=0.01, groups=[bad]), WIDE))
    assert "\\x1b[2J" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_budget_names_what_is_uncertain() -> None:
    open_ = [unsettled("a", None), *(unsettled(name, 0.07) for name in "bcdefg")]
    lines = races.budget_lines(budget(resolution=0.03, unsettled=open_), WIDE)
    assert lines == [
        "12 launches in 4 min 50 s of 5 min",
        (
            "the time of 7 of 8 cases is not known to 3%: a (a single launch), b (7%), c (7%), "
            "d (7%), e (7%) and 2 more"
        ),
    ]


def test_a_budget_that_sufficed_says_so() -> None:
    lines = races.budget_lines(budget(resolution=0.03, unsettled=[]), WIDE)
    assert lines[1:] == ["the time of each of 8 cases is known to 3%"]


def test_a_budget_shorter_than_a_launch_says_what_one_takes() -> None:
    lines = races.budget_lines(budget(budget_s=10.0, took_s=24.0, launches=1), WIDE)
    assert lines[1:] == [
        (
            "a budget of 10 s is too short to measure anything twice: one launch of 8 cases takes "
            "24 s; give more (--fw-budget), or select fewer cases (-k)"
        )
    ]


def _run(**facts: Any) -> Run:
    return Run("run.json", [], SessionFacts(**facts))


def test_a_section_has_every_contestant() -> None:
    (section,) = race_sections.sections([_run(race=RACE, budget=budget())], ["run.json"])
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
    assert [s.title for s in race_sections.sections(runs, ["a", "b"])] == ["Race (b)"]


def test_a_race_is_in_page_and_markdown() -> None:
    run = _run(race=RACE)
    for text in (writers.html([run]), writers.markdown([run])):
        assert "Race" in text
        assert "gemm cpu forward float32 256" in text
        assert "would decide it" in text
