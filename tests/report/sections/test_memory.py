"""Peak memory of calls: forward passes and training apart."""

from __future__ import annotations

from typing import Any

from support.reports import case, chart_of, part, part_of, run_of
from support.section_parts import rows

_MEBIBYTE = 2**20


def memory(peak: int, **facts: Any) -> dict[str, Any]:
    """Memory with a peak of so many MiB above 100, half of it in calls."""
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
    found = part([made], "memory: step train cpu float32 100")
    torch, mxnet, jax = ({k: v for k, v in row.items() if v} for row in rows(found))
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
    assert "of device" not in found.columns
    chart = chart_of(found, "peak above what was held before")
    assert "torch eager, forward: 20 MiB; torch eager, train: 80 MiB" in chart.text


def test_a_case_that_was_measured_twice_has_two_lines() -> None:
    entries = [case("step", "torch", memory=memory(peak)) for peak in (80, 60)]
    found = part_of("memory: step", *entries)
    assert [(row["case"], row["peak"]) for row in rows(found)] == [
        ("torch eager", "80 MiB"),
        ("torch eager #2", "60 MiB"),
    ]


def test_gaps_alone_have_a_table_without_a_picture() -> None:
    assert not part_of("memory: gemm", case(memory={"gap": "it died"})).charts
