"""Probed cases: peak memory of calls, where the time goes, and operators."""

from typing import Any

import pytest

from fwbench.frameworks.profiler import CLASSES
from fwbench.report import sections, writers
from fwbench.report.drawing import palette
from support.reports import case, chart_of, column, part, part_of, run_of
from support.section_parts import legends, rows

_MEBIBYTE = 2**20


def memory(peak: int, **facts: Any) -> dict[str, Any]:
    """Memory with a peak in MiB above 100, half of it in calls."""
    known = {"before": 100, "bound": 100 + peak // 2, "peak": 100 + peak}
    return {f"{name}_bytes": size * _MEBIBYTE for name, size in {**known, **facts}.items()}


def test_memory_is_drawn_and_listed() -> None:
    made = run_of(
        case(
            "step",
            "torch",
            direction="train",
            memory=memory(80, saved=30),
            forward_memory=memory(20),
        ),
        case("step", "mxnet", direction="train", memory=memory(60, planned=25)),
        case("step", "jax", direction="train", memory={"gap": "it died"}),
    )
    section = part([made], "memory: step train cpu float32 100")
    jax, mxnet, torch = ({k: v for k, v in row.items() if v} for row in rows(section))
    assert torch == {
        "case": "torch eager",
        "forward: peak": "20 MiB",
        "forward: of calls": "10 MiB",
        "peak": "80 MiB",
        "of calls": "40 MiB",
        "saved": "30 MiB",
        "held before": "100 MiB",
    }
    assert mxnet["planned"] == "25 MiB"
    assert jax == {"case": "jax eager", "not measured": "it died"}
    assert "of device" not in section.columns
    chart = chart_of(section, "peak above what was held before")
    assert "torch eager, forward: 20 MiB; torch eager, train: 80 MiB" in chart.text


def test_a_case_that_was_measured_twice_has_two_lines() -> None:
    entries = [case("step", "torch", memory=memory(peak)) for peak in (80, 60)]
    section = part_of("memory: step", *entries)
    assert [(row["case"], row["peak"]) for row in rows(section)] == [
        ("torch eager", "80 MiB"),
        ("torch eager #2", "60 MiB"),
    ]


def test_gaps_alone_have_a_table_without_a_picture() -> None:
    assert not part_of("memory: gemm", case(memory={"gap": "it died"})).charts


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
        "shares_within": 0.02,
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
    section = part([made], f"where the time goes: {_WORK}")
    assert section.columns[:4] == ["case", "matmul", "loss", "other"]
    second, gap, first = rows(section)
    assert {name: text for name, text in first.items() if text} == {
        "case": "torch eager",
        "matmul": "75%",
        "other": "25%",
        "shares within": "2%",
        "operators": "2 ms",
        "call": "2 ms",
        "call profiled": "3 ms",
        "overhead": "+50%",
    }
    assert second["loss"] == "100%"
    assert gap["nothing profiled"] == "numpy has no profiler"
    chart = chart_of(section, "where the time goes")
    assert legends(chart) == ["matmul", "loss", "other"]
    assert "mxnet eager: loss 100%; torch eager: matmul 75%, other 25%" in chart.text
    assert section.notes[0] in writers.markdown([made])


@pytest.mark.parametrize(
    ("completion_s", "overhead"), [(3.1e-3, "about 0"), (2.999e-3, "about 0"), (4e-3, "-25%")]
)
def test_a_profiler_that_costs_nothing_is_told_apart_from_disturbed_rounds(
    completion_s: float, overhead: str
) -> None:
    made = run_of(case(framework="torch", profile=profile(), completion_s=completion_s))
    (row,) = rows(part([made], f"where the time goes: {_WORK}"))
    assert row["overhead"] == overhead


def test_a_case_that_was_profiled_twice_has_two_lines() -> None:
    entries = [
        case(framework="torch", profile=profile(shares={name: 1.0})) for name in ("loss", "other")
    ]
    section = part_of(f"where the time goes: {_WORK}", *entries)
    assert [(row["case"], row["loss"], row["other"]) for row in rows(section)] == [
        ("torch eager", "100%", ""),
        ("torch eager #2", "", "100%"),
    ]


def test_every_class_has_a_colour_of_its_own() -> None:
    assert len({look.colour for look in palette.parts(CLASSES).values()}) == len(CLASSES)


def test_operators_are_listed() -> None:
    section = part_of(f"operators: {_WORK}", case(framework="torch", profile=profile()))
    assert rows(section) == [
        {
            "case": "torch eager",
            "operator": "aten::mm",
            "class": "matmul",
            "a call": "1.5 ms",
            "of operators": "75%",
            "calls": "2",
        }
    ]
    assert column(section, "a call")["torch eager"].value == 1.5e-3


def test_profiles_of_gaps_alone_have_a_table() -> None:
    made = run_of(case(profile={"gap": "numpy has no profiler"}))
    titles = [detail.title for detail in sections.details([made])]
    assert f"where the time goes: {_WORK}" in titles
    assert f"operators: {_WORK}" not in titles
    assert not part([made], "where the time goes").charts
