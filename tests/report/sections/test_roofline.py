"""Work is shown under what a machine can do at most."""

import json
import math
import re
from typing import Any

import pytest

from fwbench import ceilings
from fwbench.ceilings import Ceiling
from fwbench.errors import UnreadableRun
from fwbench.report import writers
from fwbench.report.drawing import lines
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.model import Run
from fwbench.report.section import Section
from support.reports import case, parsed, part, part_of, run_of, shown
from support.section_parts import (
    CEILING,
    CEILINGS,
    chart_lines,
    legends,
    marks,
    on_the_roof,
    outside,
    points_of,
    rows,
    titles,
    work,
)
from support.tables import tabled

_ROOFLINE = "roofline Fake CPU float32"


@pytest.fixture(scope="module")
def run() -> Run:
    """A run of work on both sides of the ridge, and of a copy."""
    return run_of(*on_the_roof(), ceilings=CEILINGS)


@pytest.fixture(scope="module")
def section(run: Run) -> Section:
    return part([run], _ROOFLINE)


@pytest.fixture(scope="module")
def charts(section: Section) -> tuple[Chart, Chart]:
    computed, moved = section.charts
    return computed, moved


def test_work_is_shown_under_its_ceilings(run: Run, section: Section) -> None:
    common = {"case": "numpy eager", "FLOP a byte": "20", "size": "1,000"}
    rates = {"GFLOP/s": "50", "GB/s": "2.5", "of attainable": "50%"}
    by_operation = {row["operation"]: row for row in rows(section)}
    assert by_operation["gemm forward"] == {"operation": "gemm forward", **common, **rates}
    dot, copy = (by_operation[f"{name} forward"] for name in ("dot", "copy"))
    assert (dot["FLOP a byte"], dot["of attainable"]) == ("0.25", "80%")
    assert (copy["GFLOP/s"], copy["GB/s"], copy["of attainable"]) == ("", "6", "60%")
    (note,) = section.notes
    assert "100 GFLOP/s" in note
    assert "10 GB/s" in note
    (shown_part,) = shown(run).all("section", id="part-roofline-Fake-CPU-float32")
    assert note in shown_part.text
    assert note in writers.markdown([run])


def test_copies_between_host_and_gpu_are_under_another_roof(section: Section) -> None:
    between = work("copy_to_device", 0.002, 0, 1e6, attainable_s=0.001, attainable_share=0.5)
    with_copy = part_of(_ROOFLINE, *on_the_roof(), between, ceilings=CEILINGS)
    (share,) = (row["of attainable"] for row in rows(with_copy) if "copy_to" in row["operation"])
    assert share == "50%"
    assert "Copies between host and GPU" in with_copy.notes[-1]
    assert [chart.text for chart in with_copy.charts] == [chart.text for chart in section.charts]


def test_tf32_is_under_a_roof_of_its_own() -> None:
    rates = {**CEILING.flops_per_s, "tf32": 4e11}
    shown_section = ceilings.to_json({"Fake CPU": Ceiling(rates, 1e10)})
    share = {"attainable_s": 0.01, "attainable_share": 0.25}
    tf32 = work("gemm", 0.04, 2e9, 1e8, size=1000, toggles={"tf32": "on"}, **share)
    made = run_of(*on_the_roof(), tf32, ceilings=shown_section)
    assert "100 GFLOP/s" in part([made], _ROOFLINE).notes[0]
    roof = part([made], "roofline Fake CPU tf32")
    assert "400 GFLOP/s" in roof.notes[0]
    assert len(rows(roof)) == 1


def test_the_share_is_in_the_table_of_the_operation() -> None:
    for session in ({}, {"ceilings": CEILINGS}):
        assert rows(part_of("gemm", work(), **session))[0]["of attainable"] == "50%"


def test_points_under_the_roof_say_their_rates(charts: tuple[Chart, Chart]) -> None:
    computed, moved = charts
    dot, gemm = (node.text for node in parsed(computed.svg).of_class("dots"))
    assert "2 GFLOP/s" in dot
    assert "dot forward 1,000,000" in dot
    assert "50 GFLOP/s" in gemm
    assert "gemm forward 1,000" in gemm
    assert "numpy eager 2 GFLOP/s to 50 GFLOP/s" in computed.text
    dot, copy, gemm = (node.text for node in parsed(moved.svg).of_class("dots"))
    assert "8 GB/s" in dot
    assert "6 GB/s" in copy
    assert "copy forward 1,000,000" in copy
    assert "2.5 GB/s" in gemm
    assert "numpy eager 2.5 GB/s to 8 GB/s" in moved.text


def test_work_that_does_not_compute_has_bytes_a_second_alone() -> None:
    (chart,) = part_of(_ROOFLINE, on_the_roof()[2], ceilings=CEILINGS).charts
    assert "bytes a second" in chart.title


def test_points_of_other_operations_are_not_joined(charts: tuple[Chart, Chart]) -> None:
    """The ceilings are the only lines."""
    assert [len(chart_lines(parsed(chart.svg))) for chart in charts] == [1, 1]


def _ceiling(chart: Chart, xs: tuple[float, float], ys: tuple[float, float]) -> list[Any]:
    """The ends of the dashed line, read off by the first and the last point.

    Args:
        xs: values of the x axis at these points.
        ys: values of the y axis at these points.
    """
    picture = parsed(chart.svg)
    first, *_, last = (points_of(dot)[0] for dot in picture.all("circle"))
    (ceiling,) = chart_lines(picture)

    def read_off(at: float, axis: int, ends: tuple[float, float]) -> float:
        share = (at - first[axis]) / (last[axis] - first[axis])
        return ends[0] * math.exp(share * math.log(ends[1] / ends[0]))

    return [
        pytest.approx((read_off(x, 0, xs), read_off(y, 1, ys)), rel=1e-3)
        for x, y in points_of(ceiling)
    ]


def test_the_roof_is_the_smaller_ceiling(charts: tuple[Chart, Chart]) -> None:
    computed, moved = charts
    ridge = [(0.25, 2.5e9), (10.0, 1e11), (20.0, 1e11)]
    assert _ceiling(computed, (0.25, 20.0), (2e9, 5e10)) == ridge
    assert _ceiling(moved, (8e6, 1e8), (8e9, 2.5e9)) == [(8e6, 1e10), (1e8, 1e10)]


_SIDES = {
    "both sides": on_the_roof(),
    "below the ridge": [work("dot", 0.001, 2e6, 8e6)],
    "above the ridge": [work("gemm", 0.04, 2e9, 1e7)],
    "below the ridge, several": [work("dot", 0.001, 2e6, 8e6), work("gemm", 0.04, 4e7, 8e6)],
}


@pytest.mark.parametrize("entries", _SIDES.values(), ids=_SIDES)
def test_the_roof_is_inside_the_picture(entries: list[dict[str, Any]]) -> None:
    computed, moved = part_of(_ROOFLINE, *entries, ceilings=CEILINGS).charts
    assert outside(computed) == outside(moved) == []


def test_the_text_of_a_chart_names_its_ceilings(charts: tuple[Chart, Chart]) -> None:
    for chart, ceiling in zip(charts, ("attainable", "the best copy"), strict=True):
        assert legends(chart) == ["numpy eager", ceiling]
        assert all(legend in chart.text for legend in legends(chart))


@pytest.mark.parametrize("value", [1.5, 3.0, 7.0, 0.03, 1200.0])
def test_both_ends_of_an_axis_are_marked(value: float) -> None:
    """One mark on a logarithmic axis says nothing of how far it is to any other value."""
    chart = lines.draw("t", {"a": [Point(1, value, value, value)]}, "size", "y", "{:g}x".format)
    least, *_, most = (float(mark.removesuffix("x")) for mark in marks(chart, "y"))
    assert least <= value <= most


def test_work_is_shown_where_it_comes_nearest() -> None:
    shown_section = part_of(
        _ROOFLINE,
        *(work(seconds=s, size=size) for s, size in ((0.08, 10), (0.04, 20), (0.05, 30))),
        work(seconds=0.08, size=10, direction="both"),
        work(seconds=0.08, size=10, framework="torch"),
        ceilings=CEILINGS,
    )
    assert sorted((r["case"], r["operation"], r["size"]) for r in rows(shown_section)) == [
        ("numpy eager", "gemm both", "10"),
        ("numpy eager", "gemm forward", "20"),
        ("torch eager", "gemm forward", "10"),
    ]


def test_more_than_what_is_attainable_is_shown() -> None:
    """A cache is faster than memory: the point lies above the roof, and in the picture."""
    shown_section = part_of(_ROOFLINE, work("dot", 0.0002, 2e6, 8e6), ceilings=CEILINGS)
    assert [row["of attainable"] for row in rows(shown_section)] == ["400%"]
    for chart in shown_section.charts:
        (dot,) = parsed(chart.svg).all("circle")
        assert points_of(dot)[0][1] >= 0


def test_work_that_moves_nothing_is_shown() -> None:
    (row,) = rows(part_of(_ROOFLINE, work(moved_bytes=0), ceilings=CEILINGS))
    assert row["of attainable"] == "50%"


_WITHOUT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no ceilings": (work(), {}),
    "those of another device": (work(), {"ceilings": ceilings.to_json({"Fast CPU": CEILING})}),
    "no share": (case(flops=2e9, bytes=1e8), {"ceilings": CEILINGS}),
    "no rate of copies": (
        work(),
        {"ceilings": ceilings.to_json({"Fake CPU": Ceiling({"float32": 1e11})})},
    ),
    # By a newer version: what is not understood is as if it were not there.
    "a ceiling with another fact": (work(), {"ceilings": {"Fake CPU": {"colour": "red"}}}),
}


@pytest.mark.parametrize(("made", "session"), _WITHOUT.values(), ids=_WITHOUT)
def test_no_roofline_without_ceilings(made: dict[str, Any], session: dict[str, Any]) -> None:
    assert titles([run_of(made, **session)]) == ["gemm cpu forward float32"]


@tabled
def test_damaged_ceilings_are_named(damaged: Any, message: str) -> None:
    with pytest.raises(UnreadableRun, match=re.escape(message)):
        run_of(work(), ceilings=json.loads(json.dumps(damaged)))


def test_a_dtype_without_a_known_rate_has_no_roof() -> None:
    copy = work("copy", 0.002, 0, 1.2e7, dtype="float64")
    shown_section = part_of("roofline Fake CPU float64", copy, ceilings=CEILINGS)
    assert [row["of attainable"] for row in rows(shown_section)] == ["60%"]
    assert [chart.title for chart in shown_section.charts] == [
        f"{shown_section.title}: bytes a second"
    ]
    assert "no known rate" in shown_section.notes[0]


def test_each_device_has_its_roofline() -> None:
    faster = Ceiling({"float32": 1e13}, 1e12)
    made = run_of(
        work(),
        work(device="gpu:0", device_name="Fake GPU"),
        work(device="gpu:1", device_name="Other GPU", attainable_share=0.5),
        ceilings=ceilings.to_json({"Fake CPU": CEILING, "Fake GPU": faster}),
    )
    assert [title for title in titles([made]) if title.startswith("roofline")] == [
        "roofline Fake CPU float32",
        "roofline Fake GPU float32",
    ]
    assert "10,000 GFLOP/s" in part([made], "roofline Fake GPU").notes[0].replace("1e+04", "10,000")
    assert "100 GFLOP/s" in part([made], "roofline Fake CPU").notes[0]


def test_each_run_has_its_roofline() -> None:
    higher = ceilings.to_json({"Fake CPU": Ceiling({"float32": 2e11}, 2e10)})
    sessions: list[dict[str, Any]] = [{"ceilings": CEILINGS}, {}, {"ceilings": higher}]
    runs = [
        run_of(work(), name=f"{number}.json", number=number, **session)
        for number, session in enumerate(sessions)
    ]
    shown_titles = [title for title in titles(runs) if title.startswith("roofline")]
    assert shown_titles == [f"{_ROOFLINE} (0.json)", f"{_ROOFLINE} (2.json)"]
    first, second = (part(runs, title) for title in shown_titles)
    assert "10 GB/s" in first.notes[0]
    assert "20 GB/s" in second.notes[0]
    assert [row["case"] for row in rows(second)] == ["numpy eager (2.json)"]
