"""Gains of operations over eager."""

import csv
import io
import math
import statistics
from typing import Any

import pytest
from scipy.special import stdtrit

from fwbench.report import sections, writers
from fwbench.report.ranking import contests
from fwbench.report.section import Section
from fwbench.report.sections import operations
from support.reports import (
    case,
    chart_of,
    column,
    parsed,
    part,
    part_of,
    rounds_of,
    run_of,
    runs_of,
)
from support.section_parts import legends, outside, rows
from support.tables import tabled


def _gains(found: Section) -> list[tuple[str, str]]:
    """Case and gain of the rows that have one, without the interval."""
    cells = [(row["case"], row["against eager"].partition(" ")[0]) for row in rows(found)]
    return [(name, gain) for name, gain in cells if gain]


def test_gains_are_shown_over_sizes() -> None:
    found = part_of(
        "gemm",
        case("gemm", "torch", 4.0, size=100),
        case("gemm", "torch", 2.0, "compile", size=100),
        case("gemm", "torch", 8.0, size=1000),
        case("gemm", "torch", 1.0, "compile", size=1000),
        case("gemm", "tensorflow", 1.0, size=100),
        case("gemm", "tensorflow", 4.0, "xla", size=100),
        case("gemm", "jax", 1.0, "jit", size=100),
        case("gemm", "mxnet", 1.0, size=100),
        case("gemm", "mxnet", 1.0, "hybridize", size=1000),
        case("gemm", "mxnet", 2.0, "hybridize", size=100, condition="contended"),
        case("gemm", "mxnet", 2.0, size=1000, condition="contended"),
        case("gemm", "mxnet", 2.0, size=10),
    )
    assert _gains(found) == [
        *(("torch compile", "2.00x"), ("tensorflow xla", "0.25x"), ("torch compile", "8.00x"))
    ]
    chart = chart_of(found, "times as fast as eager")
    assert legends(chart) == ["tensorflow xla", "torch compile", "as fast as eager"]
    assert "tensorflow xla 0.25x to 0.25x; torch compile 2x to 8x" in chart.text
    assert len(parsed(chart.svg).all("circle")) == 3


def test_gains_have_intervals() -> None:
    """They are of 90 %, by Student's t with the degrees of freedom of the five launches."""
    compiled = case("gemm", "torch", (1.0, 2.0, 2.0, 2.0, 4.0), "compile")
    jax = [case("gemm", "jax", 4.0), case("gemm", "jax", 2.0, "jit")]
    found = part_of("gemm", case("gemm", "torch", 4.0), compiled, *jax)
    cell = column(found, "against eager")["torch compile"]
    off = math.exp(stdtrit(4, 0.95) * statistics.stdev(map(math.log, (1, 2, 2, 2, 4)))
                   * math.sqrt(math.pi / 10))  # fmt: skip
    assert (cell.text, cell.value) == (f"2.00x ({2 / off:.2f} to {2 * off:.2f})", 2.0)
    chart = chart_of(found, "times as fast as eager")
    picture = parsed(chart.svg)
    bars = [bar.text for bar in picture.of_class("bar")]
    assert [text for text in bars if "2x" in text and "5 launches, " in text]
    assert len(picture.of_class("ci")) == 1
    assert outside(chart) == []


def test_rounds_have_gains_with_intervals() -> None:
    """They follow from what the session has measured twice, or from 5 %, and not from rounds."""
    entries = [
        rounds_of(case("gemm", "torch", [least_s + i / 1000 for i in range(1000)], execution))
        for execution, least_s in (("eager", 4.0), ("compile", 2.0))
    ]
    ratio = 4.4995 / 2.4995
    twice = {"torch": {"cases": 12, "sd": 0.1, "pairs": {}}}
    for revisits, off in (None, 1.05), (twice, math.exp(stdtrit(1.75, 0.95) * 0.1 * math.sqrt(2))):
        found = part_of("gemm", *entries, revisits=revisits)
        cell = column(found, "against eager")["torch compile"]
        expected = f"{ratio:.2f}x ({ratio / off:.2f} to {ratio * off:.2f})"
        assert cell.text == expected


@tabled
def test_no_gain_over_other_work(workload: str, framework: str, facts: dict[str, Any]) -> None:
    other = case(workload, framework, execution="compile", **facts)
    made = run_of(case("gemm", "torch"), other)
    drawn = [chart.title for one in sections.details([made]) for chart in one.charts]
    assert drawn
    assert [title for title in drawn if "eager" in title] == []


def test_gains_are_over_eager_with_the_same_toggles() -> None:
    entries = [
        case("gemm", "tensorflow", seconds, execution, toggles_asked={"onednn": onednn})
        for onednn, eager_s in (("off", 8.0), ("on", 2.0))
        for execution, seconds in (("eager", eager_s), ("graph", 1.0))
    ]
    found = part_of("gemm", *entries)
    off, on = "tensorflow graph onednn=off", "tensorflow graph onednn=on"
    assert dict(_gains(found)) == {off: "8.00x", on: "2.00x"}
    assert chart_of(found, "times as fast as eager").text.endswith(f"{off} 8x; {on} 2x")


def test_gains_are_within_a_run() -> None:
    runs = runs_of(
        first=[case(values_s=2.0), case(values_s=1.0, execution="compile")],
        second=[case(values_s=9.0), case(values_s=3.0, execution="compile")],
        eager=[case(values_s=100.0)],
        compiled=[case(values_s=1.0, execution="compile")],
    )
    found = part(runs, "gemm")
    first, second = "numpy compile (first.json)", "numpy compile (second.json)"
    assert dict(_gains(found)) == {first: "2.00x", second: "3.00x"}
    assert chart_of(found, "times as fast as eager").text.endswith(f"{first} 2x; {second} 3x")


@pytest.mark.parametrize(
    "others",
    [[], [case("gemm", "torch", 9.0, "compile", size=size) for size in (900, 9000)]],
    ids=["bars", "lines"],
)
def test_a_case_that_two_tests_measured_is_two_lines(others: list[dict[str, Any]]) -> None:
    again = case("gemm", "torch", 3.0, "compile")
    again["fullname"] = "test_other.py::test_other[gemm]"
    first = [case("gemm", "torch", 6.0), case("gemm", "torch", 2.0, "compile")]
    found = part_of("gemm", *first, again, *others)
    assert [*column(found, "median")] == ["torch compile", "torch compile #2", "torch eager"]
    assert ["torch compile #2" in chart.text for chart in found.charts] == [True, True]


def test_a_first_call_in_a_fresh_process_stands_apart() -> None:
    known = case(first_call_in_process_s=0.018, first_call_s=0.814)
    found = column(part_of("gemm", known, case(framework="torch")), "first call in process")
    assert found["numpy eager"].text == "18 ms, fresh 814 ms"
    assert "fresh" not in found["torch eager"].text


def test_shapes_are_shown_and_their_numbers_order_them() -> None:
    made = run_of(
        case("conv", "torch", 4.0, size=9000, shape="9x9"),
        case("conv", "torch", 1.0, size=20, shape="10x1"),
        case("conv", "torch", 2.0, "compile", size=20, shape="10x1"),
        case("conv", "torch", 9.0, size=9100, shape="9x10"),
    )
    found = part([made], "conv")
    sizes = [row.cells[1] for row in found.rows]
    assert [(one.text, one.value) for one in sizes[:3]] == [
        *(("10x1", 20), ("10x1", 20), ("9x9", 9000))
    ]
    assert "10x1, 5 launches" in parsed(chart_of(found, "time against size").svg).text
    assert "10x1, 5 launches" in parsed(chart_of(found, "times as fast as eager").svg).text
    written = csv.DictReader(io.StringIO(writers.comma_separated([made])))
    assert [(row["size"], row["shape"]) for row in written][:2] == [("9000", "9x9"), ("20", "10x1")]


def test_a_shape_is_part_of_what_is_ranked() -> None:
    """Two shapes that move as much are two works."""
    made = run_of(
        *(case("conv", name, size=90, shape=shape) for name in "ab" for shape in ("9x5", "5x9"))
    )
    titles = [contest.title for contest in contests(made.records)]
    assert titles == ["conv cpu forward float32 9x5", "conv cpu forward float32 5x9"]


def test_rows_are_by_size_and_speed() -> None:
    made = run_of(
        *(case("gemm", "numpy", 4.0, size=9), case("gemm", "numpy", 4.0, size=8)),
        *(case("gemm", "torch", 2.0, size=9), case("gemm", "torch", 6.0, size=8)),
        *(case("gemm", name, 1.0, size=9, condition="contended") for name in ("mxnet", "jax")),
        case("gemm", "mxnet", 3.0, size=8, condition="contended"),
    )
    found = part([made], "gemm")
    assert [(row["case"], row["size"], row["against fastest"]) for row in rows(found)] == [
        # An upper bound below all others is the fastest; two of them are not.
        *(("mxnet eager", "8", "1x"), ("numpy eager", "8", "1.33x"), ("torch eager", "8", "2x")),
        *((f"{name} eager", "9", "") for name in ("jax", "mxnet", "torch", "numpy")),
    ]


def test_ratios_are_within_the_same_work() -> None:
    def embedding(framework: str, sparse: str, median_s: float) -> dict[str, Any]:
        sparse_s = {"toggles": {"sparse": sparse}, "toggles_asked": {"sparse": sparse}}
        return case("embedding", framework, median_s, **sparse_s)

    runs = runs_of(
        first=[embedding("torch", "on", 1.0), embedding("torch", "off", 8.0)],
        second=[embedding("torch", "off", 4.0), embedding("mxnet", "off", 2.0)],
    )
    for title in ("embedding", "overview"):
        found = part(runs, title)
        cells = [cell for row in found.rows for cell in row.cells if cell.timing]
        said = {(cell.timing.contestant, cell.timing.run): cell for cell in cells if cell.timing}
        assert {who: cell.value for who, cell in said.items()} == {
            ("torch eager sparse=on", 0): None,  # without a rival
            ("torch eager sparse=off", 0): None,
            ("torch eager sparse=off", 1): 2.0,
            ("mxnet eager sparse=off", 1): 1.0,
        }
        sparse, *dense = (cell.timing.contest for cell in said.values() if cell.timing)
        assert {*dense} == {dense[0]} != {sparse}


@pytest.mark.parametrize(
    ("facts", "mark"),
    [({"spinning": True}, "spinning"), ({"precision_bits": 10}, "10 of 23 bits")],
    ids=["spinning", "reduced"],
)
def test_clean_cases_keep_their_marks(facts: dict[str, Any], mark: str) -> None:
    marked = case(condition="clean", **facts)
    found = part_of("gemm", marked, case(size=9, condition="clean"))
    assert [cell.text for row in found.rows for cell in row.cells if mark in cell.text] == [mark]
    assert "condition" in found.columns


def test_of_many_operations_those_that_differ_most_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "_DRAWN", 2)
    entries = [
        case(workload, framework, seconds)
        for workload, slow_s in (("a", 2.0), ("b", 9.0), ("c", 5.0))
        for framework, seconds in (("numpy", slow_s), ("torch", 1.0))
    ]
    a, b, c = operations.sections([run_of(*entries)], ["run.json"])
    assert [bool(found.charts) for found in (a, b, c)] == [False, True, True]
    assert [len(found.rows) for found in (a, b, c)] == [2, 2, 2]
    assert "2 of 3 operations whose times differ most" in a.page_notes[0]
    assert b.page_notes == []


def test_the_memory_of_a_gpu_has_a_column() -> None:
    memory = {"device_memory_before_bytes": 2**20, "peak_device_memory_bytes": 5 * 2**19}
    assert rows(part_of("gemm", case(**memory)))[0]["GPU memory"] == "1.5 MiB"
    assert "GPU memory" not in part_of("gemm", case()).columns


def test_no_column_of_ratios_where_at_most_one_time_is_known() -> None:
    """Not even another baseline has any: contended times are upper bounds."""
    busy = [case("gemm", name, contended=True) for name in ("numpy", "torch")]
    assert "against fastest" not in part_of("gemm", *busy, case("gemm", "mxnet")).columns
    known = [case("gemm", name) for name in ("mxnet", "jax")]
    assert "against fastest" in part_of("gemm", *busy, *known).columns
