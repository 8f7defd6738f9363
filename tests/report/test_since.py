"""A row of versions in words: since which one a case is slower or faster."""

import json
from collections.abc import Callable

import pytest

from fwbench.records.session_facts import StoredRow
from fwbench.report import since
from support.versions import Versions, measured

_NAMES = [f"1.{place}" for place in range(6)]


def _row(
    case: Callable[[int], float], *, budget_s: float = 1e9, missing: int | None = None
) -> StoredRow:
    versions = Versions({"case": lambda place: 2e-3 * case(place)}, deviation=1e-6)
    if missing is not None:
        versions.missing[missing] = "case"
    row = measured(versions, len(_NAMES), budget_s=budget_s)
    return row.stored("pkg>=1", _NAMES, {"1.6": "no wheel", "1.7": "no wheel"}, {"python": "3.11"})


def _long_row(case: Callable[[int], float]) -> StoredRow:
    """More versions than can take turns, each half as much slower."""
    names = [f"1.{place}" for place in range(12)]
    versions = Versions({"case": lambda place: 2e-3 * case(place) ** 0.5}, deviation=1e-6)
    return measured(versions, len(names)).stored("pkg>=1", names, {}, {})


def test_the_lines_of_a_case_that_has_changed() -> None:
    lines = since.table(_row(lambda place: 1.5 if place >= 3 else 1.0))
    assert lines[0].startswith("case: slower since 1.3 (+50.")
    assert [line.split()[0] for line in lines[1:7]] == _NAMES
    assert [line.split()[1:3] for line in lines[1:4]] == [["2", "ms"]] * 3
    assert lines[4].split()[1:4] == ["3", "ms", "+50.0%"]
    assert lines[4].endswith(" launches")
    assert lines[7] == "not measured: 1.6, 1.7: no wheel"
    assert lines[8].startswith("took ")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (lambda place: 2.0 if place in (2, 3) else 1.0, ["slower since 1.2", "fixed in 1.4"]),
        (lambda place: 0.5 if place in (2, 3) else 1.0, ["faster since 1.2", "slower again since"]),
        (lambda place: 1.0 + (place > 1) + (place > 3), ["slower since 1.2", "slower since 1.4"]),
        (lambda place: [1, 2, 2, 1.7, 1.7, 1.7][place], ["slower since 1.1", "faster since 1.3"]),
    ],
)
def test_what_is_taken_back_is_told(case: Callable[[int], float], words: list[str]) -> None:
    sentence = since.table(_row(case))[0].removeprefix("case: ")
    parts = sentence.split(", ")
    assert len(parts) == len(words)
    assert [part.startswith(word) for part, word in zip(parts, words, strict=True)] == [True, True]


def test_a_step_over_a_version_without_the_case_names_both_ends() -> None:
    lines = since.table(_row(lambda place: 1.5 if place >= 3 else 1.0, missing=3))
    assert lines[0].startswith("case: slower since 1.4 or a version after 1.2 (")


def test_a_version_without_the_case_has_a_reason() -> None:
    """A version that is a gap has its own line."""
    row = _row(lambda _: 1.0, missing=3)
    assert "case: not measured in 1.3: failed" in since.table(row)
    assert "- case: not measured in 1.3: failed" in since.markdown(row).splitlines()
    row.gaps["1.3"] = "1.3: no wheel"
    assert not any("not measured in" in line for line in since.table(row))


def test_flat_cases_are_folded() -> None:
    lines = since.table(_row(lambda _: 1.0))
    assert lines[0].startswith("1 case without a change above ")
    assert lines[0].endswith("% in a step: case")


@pytest.mark.parametrize("row", [_row, _long_row])
def test_small_steps_are_told_that_add_up(row: Callable[..., StoredRow]) -> None:
    """None of them is a change by itself, but the last version is slower than the first one."""
    stored = row(lambda place: 1.02**place)
    last = list(stored.cases["case"].times_s)[-1]
    assert since.table(stored)[0].startswith(f"case: slower since {last} or a version after 1.0 (+")


def test_what_could_not_be_told_is_named() -> None:
    line = since.table(_row(lambda place: 1.5 if place >= 3 else 1.0, budget_s=20))[0]
    assert line.startswith("case: cannot tell: 1.0 to 1.1 (")


def test_markdown_and_json_have_the_same() -> None:
    row = _row(lambda place: 1.5 if place >= 3 else 1.0)
    text = since.markdown(row)
    assert text.startswith("### fwbench since: pkg")
    assert "**case: slower since 1.3 (+50.0%)**" in text
    assert "| 1.3 | 3 ms | +50.0% |" in text
    figures = json.loads(json.dumps(dict(row)))
    (change,) = figures["cases"]["case"]["changes"]
    assert (change["after"], change["since"], change["verdict"]) == ("1.2", "1.3", "regressed")
    assert change["bounds"][0] <= change["ratio"] == pytest.approx(1.5, rel=0.01)
    assert figures["cases"]["case"]["times_s"]["1.5"] == pytest.approx(3e-3, rel=0.01)
    assert (figures["rules"]["python"], figures["rules"]["level"]) == ("3.11", 0.02)
    assert figures["gaps"] == {"1.6": "no wheel", "1.7": "no wheel"}


def test_a_section_draws_each_case_over_the_versions() -> None:
    """From what was stored, as a report reads it."""
    row = StoredRow.checked(json.loads(json.dumps(dict(_row(lambda p: 1.5 if p >= 3 else 1.0)))))
    section = since.section(row, "")
    assert section.title == "pkg>=1 by version"
    (chart,) = section.charts
    assert chart.title == "case"
    assert ">+50.0%<" in chart.svg
    assert all(f">{name}<" in chart.svg for name in _NAMES)
    cells = [[cell.text for cell in each.cells] for each in section.rows]
    assert [texts[:3] for texts in cells[:2]] == [["case", "1.0", "2 ms"], ["case", "1.1", "2 ms"]]
    assert cells[3][3] == "+50.0%"
    assert cells[3][-1] == "regressed"
    assert section.notes[0].startswith("case: slower since 1.3 (+50.")


def test_a_section_of_a_row_of_which_little_is_known() -> None:
    section = since.section(_row(lambda _: 1.0, budget_s=20), "")
    assert [each.cells[-1].text for each in section.rows] == ["", *["cannot tell"] * 5]
    assert section.charts
