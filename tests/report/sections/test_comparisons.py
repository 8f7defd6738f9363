"""Verdicts of comparisons are shown in reports."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.errors import UnreadableRun
from fwbench.gate.verdicts import Comparison, Judgement, Verdict, VersionChange
from fwbench.report import writers
from fwbench.report.section import Section
from support.launched_runs import entry, output, times, write
from support.reports import case, chart_of, interpreted, parsed, part, run_of, shown
from support.section_parts import (
    CEILINGS,
    as_run,
    compared,
    legends,
    marks,
    outside,
    points_of,
    rows,
    titles,
    work,
)
from support.tables import tabled

_SOME_UNREADABLE = 1


def judged(
    name: str, ratio: float, verdict: Verdict = Verdict.REGRESSED, **facts: Any
) -> Judgement:
    """A case with a ratio of its times, and an interval of 10 % either way."""
    known = {"low": 0.9 * ratio, "high": 1.1 * ratio, **facts}
    times_s = {"base": (1.0,), "contender": (ratio,)}
    key = known.pop("key", name)
    return Judgement(key, name, "numpy", verdict, ratio=ratio, **times_s, **known)


def comparison_section(*judgements: Judgement, **changes: Any) -> Section:
    """The section of a comparison of these cases."""
    made = Comparison("base", "head", judgements, {"confidence": 0.99}, **changes)
    return part([interpreted(made.to_json())], "head against base")


@pytest.mark.parametrize("around", [as_run, dict])
def test_verdicts_are_shown(around: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    made = compared(notes=["the driver differs"]).to_json()
    # A newer fwbench may have more to say.
    made |= {"weather": "fine"}
    made["judgements"][0]["colour"] = "red"
    shown_section = interpreted(around(made))
    head = part([shown_section], "head.json against base.json")
    assert [(row["verdict"], row["case"]) for row in rows(head)] == [
        ("regressed", "slow"),
        ("missing", "lost"),
        ("inconclusive", "busy"),
        ("new", "added"),
        ("improved", "fast"),
        ("unchanged", "same"),
    ]
    slow, lost = rows(head)[:2]
    assert (slow["base"], slow["contender"], slow["ratio"]) == ("1 s", "2 s", "+100.0%")
    assert re.fullmatch(r"\+\d+\.\d% to \+\d+\.\d%", slow["90 % bounds"])
    assert (lost["base"], lost["ratio"], lost["why"]) == ("", "", "not collected")
    _, counts, sessions, note = head.notes
    assert counts.startswith("head.json against base.json: 1 regressed, 1 missing, ")
    assert sessions.startswith("8 sessions against 8 sessions: ")
    assert note == "the driver differs"
    (section,) = shown(shown_section).all("section", id="part-head-json-against-base-json")
    assert "the driver differs" in section.text
    assert len(section.of_class("chart")) == 2
    assert "the driver differs" in writers.markdown([shown_section])
    assert "| regressed | slow |" in writers.markdown([shown_section])


def test_verdicts_are_counted_in_a_chart() -> None:
    section = comparison_section(
        judged("a", 2.0), judged("b", 3.0), judged("c", 1.0, Verdict.UNCHANGED)
    )
    chart = chart_of(section, "verdicts")
    assert chart.text.endswith("cases, regressed: 2; cases, unchanged: 1")
    assert len(parsed(chart.svg).of_class("bar")) == 2
    # A count of one has two marks: none is between whole cases.
    assert marks(chart_of(comparison_section(judged("a", 2.0)), "verdicts"), "x") == ["0", "1"]


def test_changes_are_drawn_with_their_intervals() -> None:
    section = comparison_section(
        judged("slow", 2.0),
        judged("fast", 0.5, Verdict.IMPROVED),
        judged("same", 1.0, Verdict.UNCHANGED, low=1.0, high=1.0),
        Judgement("lost", "lost", "", Verdict.MISSING, "not collected"),
    )
    chart = chart_of(section, "change of the time")
    assert chart.text.endswith("slow regressed, +100 %; fast improved, -50 %; same unchanged, 0 %")
    assert legends(chart) == ["regressed", "improved", "unchanged"]
    picture = parsed(chart.svg)
    bars = [
        {node.attributes["class"]: node.text for node in bar.all("desc")}
        for bar in picture.of_class("bar")
    ]
    values = {(bar["x_label"], bar["value"]) for bar in bars}
    assert {("slow", "+100 %"), ("fast", "-50 %"), ("same", "0 %")} <= values
    assert not {("slow", "-50 %"), ("fast", "+100 %")} & values
    assert len(picture.of_class("ci")) == 2
    assert "+80 % to +120 %" in picture.text
    assert "-55 % to -45 %" in picture.text
    assert "lost" not in picture.text


def test_changes_lead_to_the_right_and_to_the_left() -> None:
    """Slower is right of nothing, faster is left of it, by as much; so are the intervals."""
    section = comparison_section(
        judged("slow", 1.5, low=1.25, high=1.75),
        judged("fast", 0.5, Verdict.IMPROVED, low=0.25, high=0.75),
    )
    picture = parsed(chart_of(section, "change of the time").svg)
    # Each case has a bar of no width in the colour of every other verdict.
    ends = [points_of(node) for node in picture.of_class("rect")]
    faster, slower = sorted((left, right) for (left, _), (right, _) in ends if right > left + 1)
    zero = faster[1]
    half = zero - faster[0]
    assert slower == pytest.approx((zero, zero + half))
    spreads = [
        [x for path in node.all("path") for x, _ in points_of(path)]
        for node in picture.of_class("ci")
    ]
    assert [(min(xs), max(xs)) for xs in spreads] == [
        pytest.approx((zero + half / 2, zero + 1.5 * half)),
        pytest.approx((zero - 1.5 * half, zero - half / 2)),
    ]


def test_intervals_are_inside_the_picture() -> None:
    section = comparison_section(judged("wide", 1.05, Verdict.INCONCLUSIVE, low=0.5, high=4.0))
    assert outside(chart_of(section, "change of the time")) == []


def test_cases_that_are_called_alike_are_both_drawn() -> None:
    """Two tests may have the same case."""
    section = comparison_section(
        judged("gemm", 2.0, key="test_a.py::test[gemm]"),
        judged("gemm", 1.5, key="test_b.py::test[gemm]"),
        judged("gemm", 0.5, Verdict.IMPROVED, key="test_c.py::test[gemm]"),
    )
    assert [row["ratio"] for row in rows(section)] == ["+100.0%", "+50.0%", "-50.0%"]
    chart = chart_of(section, "change of the time")
    for change in ("+100 %", "+50 %", "-50 %"):
        assert change in chart.text
    assert len(parsed(chart.svg).of_class("ci")) == 3


def test_the_worst_changes_are_drawn() -> None:
    cases = [judged(f"case{i:02}", 1 + i / 100, Verdict.UNCHANGED) for i in range(50)]
    section = comparison_section(*cases, judged("slow", 1.2))
    assert len(section.rows) == 51
    assert rows(section)[0]["case"] == "slow"
    chart = chart_of(section, "change of the time")
    assert len(parsed(chart.svg).of_class("ci")) == 40
    assert "slow" in chart.text
    assert "case49" in chart.text
    assert "case10" not in chart.text


def test_a_comparison_without_a_ratio_has_no_changes() -> None:
    section = comparison_section(Judgement("lost", "lost", "", Verdict.MISSING, "not collected"))
    assert [chart.text for chart in section.charts] == [
        "head against base: verdicts: cases, missing: 1"
    ]


def test_a_comparison_of_nothing_is_a_part() -> None:
    section = comparison_section(notes=["nothing was measured"])
    notes = ["head against base: no case", "nothing was measured"]
    assert (section.rows, list(section.charts), section.notes) == ([], [], notes)


def test_a_comparison_is_summed_up_as_in_the_terminal() -> None:
    judgements = judged("a", 2.0), judged("b", 0.5, Verdict.INCONCLUSIVE)
    section = comparison_section(*judgements, versions=[VersionChange("numpy", "1.0", "2.0")])
    assert section.notes == [
        "numpy: 1.0 -> 2.0",
        "numpy: 1.000x of the base's time (geometric mean)",
        "head against base: 1 regressed, 1 inconclusive",
    ]


def test_the_confidence_is_that_of_the_comparison() -> None:
    run = interpreted(compared(confidence=0.95).to_json())
    assert "95 % bounds" in part([run], "head.json").columns


def test_ratios_are_sorted_by_value() -> None:
    section = comparison_section(judged("a", 10.0), judged("b", 2.0))
    ratio = section.columns.index("ratio")
    assert [row.cells[ratio].value for row in section.rows] == [10.0, 2.0]
    assert "why" not in section.columns, "no row has a reason"
    assert [row.keys for row in section.rows] == [{"framework": "numpy"}] * 2


def test_verdicts_of_several_runs_are_apart() -> None:
    made = compared().to_json()
    stored = {"one.json": as_run(made), "plain.json": output([case()]), "two.json": made}
    runs = [
        interpreted(values, name, number) for number, (name, values) in enumerate(stored.items())
    ]
    shown_titles = [title for title in titles(runs) if "against" in title]
    assert shown_titles == [
        "head.json against base.json (one.json)",
        "head.json against base.json (two.json)",
    ]


@pytest.mark.parametrize(
    "gate", [None, {}, {"base": "base.json", "problem": "too few launches", "verdicts": {}}]
)
def test_a_run_that_was_not_judged_has_no_verdicts(gate: dict[str, Any] | None) -> None:
    assert titles([run_of(case(), gate=gate)]) == ["gemm cpu forward float32"]


def test_what_fwbench_gate_wrote_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for i in range(6):
        write(Path(f"base/{i}.json"), entry("gemm", times(1.0)), entry("dot", times(1.0)))
    write(Path("head.json"), entry("gemm", times(2.0)), entry("dot", times(1.0)))
    compared_with = ["gate", "base", "head.json", "--json", "verdicts.json"]
    assert cli.main(compared_with) == 1, "there is a regression"
    assert cli.main(["report", "verdicts.json", "-o", "report.html"]) == 0
    assert capsys.readouterr().err == ""
    shown_section = parsed(Path("report.html").read_text(encoding="utf-8"))
    (section,) = shown_section.all("section", id="part-head-json-against-base")
    assert [node.text for node in section.all("th", scope="row")] == ["regressed", "unchanged"]


def test_a_comparison_is_not_said_to_be_of_pytest_benchmark() -> None:
    shown_section = shown(interpreted(compared().to_json()))
    (section,) = shown_section.all("section", **{"aria-labelledby": "provenance"})
    assert "pytest-benchmark" not in section.text


def _first(**facts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda made: made["judgements"][0].update(facts)


_DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a verdict that is none": _first(verdict="worse"),
    "a verdict that is a list": _first(verdict=[]),
    "no verdict": lambda made: made["judgements"][0].pop("verdict"),
    "no name": lambda made: made["judgements"][0].pop("name"),
    "a ratio that is NaN": _first(ratio=float("nan")),
    "a launch beyond all numbers": _first(base=[1e35]),
    "a case that is text": lambda made: made["judgements"].append("gemm"),
    "cases that are a number": lambda made: made.update(judgements=3),
    "no base": lambda made: made.pop("base"),
    "no rules": lambda made: made.pop("rules"),
    "no notes": lambda made: made.pop("notes"),
    "rules that are text": lambda made: made.update(rules="hard"),
    "rules without a confidence": lambda made: made["rules"].pop("confidence"),
    "a confidence that is text": lambda made: made["rules"].update(confidence="high"),
    "notes that are a number": lambda made: made.update(notes=3),
    "a name that is a number": _first(name=3),
    "a reason that is a number": _first(ratio=None, reason=3),
    "a ratio that is text": _first(ratio="2"),
    "a ratio below 0": _first(ratio=-1.0),
    "an end that is text": _first(low="1"),
    "a ratio without launches": _first(base=[]),
    "a launch that is text": _first(base=["1", "2"]),
    "a visible change that is text": _first(visible="much"),
}


@pytest.mark.parametrize("around", [as_run, dict])
@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
def test_a_damaged_comparison_is_named(
    damage: Callable[[dict[str, Any]], Any], around: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> None:
    made = json.loads(json.dumps(compared().to_json()))
    damage(made)
    with pytest.raises(UnreadableRun, match=r"^run\.json is not a valid fwbench run"):
        interpreted(around(made))


@tabled
def test_damaged_work_is_named(facts: dict[str, Any]) -> None:
    made = work()
    made["extra_info"]["fwbench"].update(facts)
    with pytest.raises(UnreadableRun, match=r"^run\.json is not a valid fwbench run"):
        run_of(made, ceilings=CEILINGS)
