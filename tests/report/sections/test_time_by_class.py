"""Where the time goes: shares by class of operators, and operators by their names."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.profiler import CLASSES
from fwbench.report import sections, writers
from fwbench.report.drawing import palette
from support.reports import case, chart_of, column, part, part_of, run_of
from support.section_parts import legends, rows

_WORK = "gemm forward cpu float32 100"


def profile(operator: str = "aten::mm", **facts: Any) -> dict[str, Any]:
    """A profile with two classes, most of it one operator's."""
    known = {"name": operator, "operator_class": "matmul", "time_s": 1.5e-3, "calls": 2.0}
    return {
        "calls": 3,
        "call_s": 3e-3,
        "operators_s": 2e-3,
        "trace": "trace.json",
        "shares": {"matmul": 0.75, "other": 0.25},
        "operators": [known],
        **facts,
    }


def test_shares_are_drawn_and_listed() -> None:
    made = run_of(
        case(framework="torch", profile=profile(), completion_s=2e-3),
        case(framework="mxnet", profile=profile("dot", shares={"loss": 1.0})),
        case(framework="numpy", profile={"gap": "numpy has no profiler"}),
        case("dot", framework="numpy"),
    )
    found = part([made], f"where the time goes: {_WORK}")
    assert found.columns[:4] == ["case", "matmul", "loss", "other"]
    first, second, gap = rows(found)
    assert {name: text for name, text in first.items() if text} == {
        "case": "torch eager",
        "matmul": "75%",
        "other": "25%",
        "operators": "2 ms",
        "call": "2 ms",
        "call profiled": "3 ms",
        "overhead": "+50%",
    }
    assert second["loss"] == "100%"
    assert gap["nothing profiled"] == "numpy has no profiler"
    chart = chart_of(found, "where the time goes")
    assert legends(chart) == ["matmul", "loss", "other"]
    assert "torch eager: matmul 75%, other 25%; mxnet eager: loss 100%" in chart.text
    assert found.notes[0] in writers.markdown([made])


def test_a_case_that_was_profiled_twice_has_two_lines() -> None:
    entries = [
        case(framework="torch", profile=profile(shares={name: 1.0})) for name in ("loss", "other")
    ]
    found = part_of(f"where the time goes: {_WORK}", *entries)
    assert [(row["case"], row["loss"], row["other"]) for row in rows(found)] == [
        ("torch eager", "100%", ""),
        ("torch eager #2", "", "100%"),
    ]


def test_every_class_has_a_colour_of_its_own() -> None:
    assert len({look.colour for look in palette.parts(CLASSES).values()}) == len(CLASSES)


def test_operators_are_listed() -> None:
    found = part_of(f"operators: {_WORK}", case(framework="torch", profile=profile()))
    assert rows(found) == [
        {
            "case": "torch eager",
            "operator": "aten::mm",
            "class": "matmul",
            "a call": "1.5 ms",
            "of operators": "75%",
            "calls": "2",
        }
    ]
    assert column(found, "a call")["torch eager"].value == 1.5e-3


def test_gaps_alone_have_a_table() -> None:
    made = run_of(case(profile={"gap": "numpy has no profiler"}))
    titles = [each.title for each in sections.details([made])]
    assert f"where the time goes: {_WORK}" in titles
    assert f"operators: {_WORK}" not in titles
    assert not part([made], "where the time goes").charts
