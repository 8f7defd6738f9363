"""Ratios of operations: TensorFlow over MXNet, in 2020 and today."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from runs_of_2020 import (
    ABOUT,
    STATEMENTS,
    UNKNOWN,
    WAY_FASTER,
    of_15,
    pair,
    pairs,
    section,
    sizes_of,
    statements,
    tells_nothing,
    trained,
)

from fwbench.report.model import Run
from fwbench_extras.studies import report_2020
from fwbench_extras.studies.report_2020 import operations
from fwbench_extras.studies.report_2020.operations import Ratios
from support.reports import case, column, run_of
from support.section_parts import rows as rows_of


def ratios(run: Run, device: str = "cpu") -> dict[tuple[str, int], Ratios]:
    return {
        (ratio.operation, ratio.size): ratio
        for ratio in operations.ratios(device, list(run.records))
    }


@pytest.mark.parametrize(
    ("device", "operation", "size", "ratio"),
    [
        ("cpu", "gemm", 450, 25.128),
        ("cpu", "from_numpy", 20_000, 0.5152),
        ("cpu", "softplus", 500, 1.0472),
        ("gpu", "gemm", 450, 9.3616),
        ("gpu", "dot", 91_000, 10.605),
    ],
)
def test_published_ratios(device: str, operation: str, size: int, ratio: float) -> None:
    """TensorFlow's time over MXNet's on the same device, with or without a measurement of today."""
    (published_ratio,) = [
        candidate
        for candidate in operations.ratios(device, [])
        if (candidate.operation, candidate.size) == (operation, size)
    ]
    assert published_ratio.published == pytest.approx(ratio, rel=1e-3)
    assert (published_ratio.dispatch, published_ratio.completion) == (None, None)


def test_ratios_are_tensorflow_over_mxnet() -> None:
    """Until done and until returned, each by its own clock; whichever came first."""
    entries = pair("gemm", 100, 3.0, 20.0)
    for order in (entries, entries[::-1]):
        run = run_of(*order)
        ratio = ratios(run)["gemm", 100]
        assert (ratio.completion, ratio.dispatch) == (3.0, 20.0)
        assert [key for key, work_ratio in ratios(run).items() if work_ratio.completion] == [
            ("gemm", 100)
        ]


@pytest.mark.parametrize("changed", ["tensorflow", "mxnet"])
@pytest.mark.parametrize(
    "changes",
    [
        {"execution": "graph"},
        {"dtype": "float64"},
        {"dtype": "bfloat16"},
        {"direction": "backward"},
        {"size": 101},
        {"size": 1024},
        {"dispatch_s": None},
        {"toggles_asked": {"onednn": "off"}},
    ],
    ids=str,
)
def test_other_work_is_no_ratio(changed: str, changes: dict[str, Any]) -> None:
    """Only eager, float32, forward, the published sizes, by both clocks, without toggles."""
    facts = {"size": 100, "completion_s": 2.0, "dispatch_s": 1.0}
    entries = [
        case("gemm", framework, **{**facts, **(changes if framework == changed else {})})
        for framework in ("tensorflow", "mxnet")
    ]
    ratio = ratios(run_of(*entries))
    assert len(ratio) == 164
    assert {work_ratio.completion for work_ratio in ratio.values()} == {None}
    assert {work_ratio.dispatch for work_ratio in ratio.values()} == {None}


@pytest.mark.parametrize(
    ("first", "other"), [("tensorflow", None), ("mxnet", None), ("tensorflow", "torch")]
)
def test_a_framework_that_is_missing_makes_no_ratio(first: str, other: str | None) -> None:
    run = run_of(*(case("gemm", name) for name in (first, other) if name))
    assert ratios(run)["gemm", 100].completion is None
    table = section([run], "2020, operations on the CPU: TensorFlow's time over MXNet's")
    assert column(table, "sizes measured")["gemm"].text == "0 of 11"


def test_the_first_gpu_is_the_gpu() -> None:
    """Its figures stand beside those of the GPU, and not beside those of the CPU."""
    run = run_of(*pair("gemm", 450, 3.0, device="gpu:0"))
    sections = report_2020.sections([run])
    assert [shown_section.title for shown_section in sections if "CPU" in shown_section.title] == []
    (row,) = rows_of(
        section([run], "2020, operations on the GPU: TensorFlow's time over MXNet's, size by size")
    )
    assert row["2020, published"] == "9.36x"
    assert row["today, until the work was done"] == "3.00x"
    assert {cells["device"] for cells in rows_of(sections[0])} == {"gpu"}


def test_devices_are_apart() -> None:
    """No ratio is of a CPU and a GPU; each device has its own parts, the CPU's first."""
    tensorflow, _ = pair("gemm", 450, 3.0)
    _, mxnet = pair("gemm", 450, 3.0, device="gpu:0")
    run = run_of(mxnet, tensorflow)
    assert [shown_section.title for shown_section in report_2020.sections([run])] == [
        STATEMENTS,
        "2020, operations on the CPU: TensorFlow's time over MXNet's",
        "2020, operations on the GPU: TensorFlow's time over MXNet's",
        "2020, LeNet on the CPU",
        "2020, LeNet on the GPU",
    ]
    for device in ("cpu", "gpu"):
        assert len(statements(run, device=device)) == 6


def test_operations_with_toggles_are_no_ratios() -> None:
    usual, mxnet = pair("gemm", 100, 3.0)
    toggled = case(
        "gemm", "tensorflow", size=100, completion_s=400.0, toggles_asked={"onednn": "off"}
    )
    for order in itertools.permutations([usual, toggled, mxnet]):
        assert ratios(run_of(*order))["gemm", 100].completion == 3.0


def test_only_the_first_gpu_counts() -> None:
    """No figure is of the second, and no ratio is of both."""
    title = "2020, operations on the GPU: TensorFlow's time over MXNet's"
    first, second = (pair("gemm", 100, factor, device=f"gpu:{i}") for i, factor in ((0, 3), (1, 9)))
    for entries in ((*first, *second), (*second, *first)):
        table = section([run_of(*entries)], title)
        actual = column(table, "today, until the work was done (range)")["gemm"]
        assert actual.text == "3.00x (3.00x to 3.00x)"
    of_both = section([run_of(first[0], second[1])], title)
    assert [*of_both.columns] == ["operation", "sizes measured", "2020, published (range)"]


@pytest.mark.parametrize("device", ["gpu:1", "gpu", "gpu:00", "cpu:0", "tpu:0"])
def test_other_devices_are_beside_nothing(device: str) -> None:
    """Neither their operations nor their trainings: it is said that nothing can be told."""
    entries = [*pairs(ABOUT, 2.0, device=device), of_15("mxnet", "eager", device=device)]
    (only,) = report_2020.sections([run_of(*entries)])
    tells_nothing(only)
    beside = run_of(*entries, case("dot", "torch"))
    assert {row["device"] for row in rows_of(section([beside], STATEMENTS))} == {"cpu"}
    assert statements(beside)[WAY_FASTER]["verdict"] == UNKNOWN
    assert trained(beside) == {}


def test_operations_are_told_in_rows() -> None:
    entries = [*pair("gemm", 50, 2.0, 10.0), *pair("gemm", 450, 8.0, 40.0)]
    run = run_of(*entries)
    title = "2020, operations on the CPU: TensorFlow's time over MXNet's"
    rows = {row["operation"]: row for row in rows_of(section([run], title))}
    assert [*rows] == [*sizes_of()]
    assert rows["gemm"] == {
        "operation": "gemm",
        "sizes measured": "2 of 11",
        "2020, published (range)": "17.41x (12.07x to 25.12x)",
        "today, until calls returned (range)": "20.00x (10.00x to 40.00x)",
        "today, until the work was done (range)": "4.00x (2.00x to 8.00x)",
    }
    assert [*rows["dot"].values()] == [
        *("dot", "0 of 10", "13.29x (12.75x to 14.39x)", "not measured", "not measured")
    ]
    assert rows_of(section([run], f"{title}, size by size")) == [
        {
            "operation": f"gemm {size}",
            "2020, published": then,
            "today, until calls returned": returned,
            "today, until the work was done": done,
        }
        for size, then, returned, done in (
            (50, "12.07x", "10.00x", "2.00x"),
            (450, "25.12x", "40.00x", "8.00x"),
        )
    ]


def test_operations_are_drawn() -> None:
    """Today's by both clocks where there are any, and of 2020 the same sizes, or else all."""
    title = "2020, operations on the CPU: TensorFlow's time over MXNet's"
    run = run_of(*pair("gemm", 450, 8.0, 40.0))
    (chart,) = section([run], title).charts
    assert "gemm, today, until calls returned: 40.00x" in chart.text
    assert "gemm, today, until the work was done: 8.00x" in chart.text
    assert "gemm, 2020, published: 25.12x" in chart.text
    assert "dot, 2020, published: 13.29x" in chart.text
    for name in sizes_of():
        assert f"{name}, 2020, published: " in chart.text
    assert section([run_of(case("gemm", "torch"))], title).charts == []  # nothing to compare
