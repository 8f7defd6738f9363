"""Explanations as sections of a report: both sides' times, and bars of their differences."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import UnreadableRun
from fwbench.gate.causes import ExplainedChange
from fwbench.gate.explanation import Cause, CauseKind, Explanation
from fwbench.gate.verdicts import Judgement, Verdict
from fwbench.records.session_facts import StoredExplanation
from fwbench.report import explanation, model, writers
from fwbench.report.drawing import palette
from fwbench.report.section import Section
from support.versions import Versions, measured

_US = 1e-6

_THREADS = Cause(CauseKind.SETTINGS, "threads: 2 -> 1")


def _operator(name: str, base_us: float, contender_us: float) -> Cause:
    text = f"{name}: {base_us:g} -> {contender_us:g} us"
    sides_s = base_us * _US, contender_us * _US
    return Cause(CauseKind.OPERATORS, text, sides_s[1] - sides_s[0], sides_s)


#: A fact that differs, an operator that is slower, and one that is faster.
_CAUSES = (_THREADS, _operator("aten::mm", 61, 74), _operator("a, b -> c", 9, 2))


def _figures(*causes: Cause, gaps: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON of a command, as a report reads it."""
    explained = Explanation("key", "gemm", 90 * _US, 97 * _US, causes, gaps)
    judgement = Judgement("key", "gemm", "", Verdict.REGRESSED, ratio=1.08)
    figures = explanation.to_json([ExplainedChange(explained, judgement)])
    return json.loads(json.dumps({"explanations": figures}))


def _section(*causes: Cause, **more: Any) -> Section:
    (stored,) = _figures(*causes, **more)["explanations"]
    return explanation.section(StoredExplanation.checked(stored))


def test_both_sides_have_a_column_and_the_largest_difference_the_first_bar() -> None:
    section = _section(*_CAUSES, gaps=("the kernel forbids it",))
    assert section.columns == ["kind", "what", "base", "contender", "change", "of the change"]
    assert [[cell.text for cell in row.cells] for row in section.rows] == [
        ["settings", "threads: 2 -> 1", "", "", "", ""],
        ["operators", "aten::mm", "61 us", "74 us", "+13 us", "186%"],
        ["operators", "a, b -> c", "9 us", "2 us", "-7 us", "-100%"],
        ["not explained", "", "", "", "+1 us", "14%"],
    ]
    assert section.notes == [
        "A call: 90 us -> 97 us (+7.8 %).",
        "Not looked at: the kernel forbids it.",
    ]
    (chart,) = section.charts
    assert chart.text.endswith(": aten::mm +13 us; a, b -> c -7 us; not explained +1 us")
    assert all(colour in chart.svg for colour in (palette.LONGER, palette.SHORTER))


def test_what_is_a_profilers_cost_alone_is_about_nothing() -> None:
    """It stays in the figures, so that these add up."""
    cost = Cause(CauseKind.OPERATORS, "others: 0 -> 0 s", -0.3 * _US, (-1 * _US, -1.3 * _US))
    (stored,) = _figures(*_CAUSES, cost)["explanations"]
    assert stored["causes"][-1]["time_s"] == pytest.approx(-0.3 * _US)
    section = _section(*_CAUSES, cost)
    others = [cell.text for cell in section.rows[3].cells]
    assert others == ["operators", "others", "0 s", "0 s", "about 0", ""]
    assert "others" not in section.charts[0].text
    explained = Explanation("key", "gemm", 90 * _US, 97 * _US, [cost])
    judgement = Judgement("key", "gemm", "", Verdict.REGRESSED, ratio=1.08)
    assert explanation.lines([ExplainedChange(explained, judgement)])[1] == (
        "  operators: others: 0 -> 0 s"
    )


def test_operators_that_overlap_less_are_a_change() -> None:
    """Between them there is less than nothing on both sides, and more of it than before."""
    between = Cause(CauseKind.OPERATORS, "between: 0 -> 0 s", 5 * _US, (-8 * _US, -3 * _US))
    section = _section(between)
    assert [cell.text for cell in section.rows[0].cells][4:] == ["+5 us", "71%"]
    assert "between +5 us" in section.charts[0].text


def test_names_of_bars_fit_onto_a_phone() -> None:
    """Two that are cut off alike have a bar each."""
    long = "aten::convolution_backward_of_"
    section = _section(_operator(f"{long}one", 1, 3), _operator(f"{long}two", 1, 2))
    (chart,) = section.charts
    assert f"{long[:25]}… +2 us; {long}two: 1 -> 2 us +1 us" in chart.text


_SIGNED_US = re.compile(r"([+-][\d.]+) us(?: \(| together|$)")


def test_causes_add_up_to_the_difference_in_every_form() -> None:
    """With what is not explained; in Markdown also with those that have no line of their own."""
    operators = [_operator(f"op{number}", 10, 30 - number) for number in range(20)]
    explained = Explanation("key", "gemm", 90 * _US, 300 * _US, [_THREADS, *operators])
    change = ExplainedChange(explained, Judgement("key", "gemm", "", Verdict.REGRESSED))
    terminal, markdown = explanation.lines([change]), explanation.markdown([change]).splitlines()
    assert len(terminal) == 1 + 21 + 1
    assert len([line for line in markdown if line.startswith("- ")]) == 10
    for lines in (terminal[1:], markdown):
        told = [float(us) for line in lines for us in _SIGNED_US.findall(line)]
        assert sum(told) == pytest.approx(210)
    (stored,) = explanation.to_json([change])
    held_s = sum(cause.get("time_s") or 0.0 for cause in stored["causes"])
    assert held_s + stored["unexplained_s"] == pytest.approx(210 * _US)


def test_nothing_that_differs_is_said_without_a_table() -> None:
    section = _section()
    assert section.notes[1] == "No difference found in what was recorded."
    assert (section.rows, section.charts) == ([], [])


def test_markdown_has_ten_lines_a_case(tmp_path: Path) -> None:
    """The largest, facts, and what is not explained are among them; the page has all."""
    operators = (_operator(f"op{number}", 10, 30 - number) for number in range(20))
    path = tmp_path / "why.json"
    path.write_text(json.dumps(_figures(_THREADS, *operators)), encoding="utf-8")
    run = model.read(path)
    section = writers.markdown([run]).partition("### why it changed: gemm")[2]
    table = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert len(table) + 1 == 10
    kinds = [line.split(" | ")[:2] for line in table]
    assert kinds[0] == ["| settings", "threads: 2 -> 1"]
    assert kinds[1:7] == [["| operators", f"op{number}"] for number in range(6)]
    assert kinds[7][0] == "| not explained"
    assert kinds[8][0] == "| and 14 more, +105 us together"
    assert "op19" in writers.html([run])


@pytest.mark.parametrize("of", ["row", "comparison", "nothing else"])
def test_whatever_has_explanations_is_reported(tmp_path: Path, of: str) -> None:
    """Written by fwbench ab, since and explain."""
    figures = _figures(*_CAUSES)
    if of == "row":
        row = measured(Versions({"case": lambda _: 2e-3}), 2)
        figures |= dict(row.stored("pkg", ["1.0", "1.1"], {}, {}))
    elif of == "comparison":
        figures |= {"base": "a", "contender": "b", "judgements": [], "rules": {"confidence": 0.9}}
        figures["notes"] = []
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(figures), encoding="utf-8")
    run = model.read(path)
    assert not run.is_measured
    assert not run.is_empty
    page = writers.html([run])
    assert "why it changed: gemm" in page
    assert ("pkg by version" in page, "b against a" in page) == (of == "row", of == "comparison")


@pytest.mark.parametrize(
    ("damaged", "message"),
    [([3], r"explanations\[0\]"), ([{"key": "k"}], "is missing"), (3, "not of pytest-benchmark")],
)
def test_explanations_that_were_damaged(tmp_path: Path, damaged: Any, message: str) -> None:
    path = tmp_path / "why.json"
    path.write_text(json.dumps({"explanations": damaged}), encoding="utf-8")
    with pytest.raises(UnreadableRun, match=message):
        model.read(path)
