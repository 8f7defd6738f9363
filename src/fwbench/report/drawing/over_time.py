"""A value from run to run, between the lines of its spread, and what happened at some runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pygal

from fwbench.records.units import time
from fwbench.report.drawing.chart import Chart, Point, blank, rendered

#: Up to this many runs have a dot each.
_DOTS = 60

#: How many labels of runs have room below the axis.
_LABELS = 8


def draw(
    title: str, days: Sequence[str], points: Sequence[Point], marks: Mapping[int, str]
) -> Chart:
    """A chart of times over runs.

    Args:
        title: of the chart.
        days: a label for each run.
        points: a value for each run; seconds.
        marks: what happened, by the number of the run.
    """
    chart = blank(
        pygal.Line,
        3 + bool(marks),
        value_formatter=time,
        x_labels_major_every=max(1, math.ceil(len(days) / _LABELS)),
        show_minor_x_labels=False,
        show_dots=len(points) <= _DOTS,
        dots_size=2,
    )
    chart.x_labels = days
    chart.add("median", [{"value": point.y, "label": point.label} for point in points])
    faint = {"width": 1, "dasharray": "3, 3"}
    for name, ends in (
        ("lower quartile", [point.low for point in points]),
        ("upper quartile", [point.high for point in points]),
    ):
        chart.add(name, ends, show_dots=False, stroke_style=faint)
    if marks:
        dots = [
            {"value": point.y, "label": marks[i]} if i in marks else None
            for i, point in enumerate(points)
        ]
        chart.add("upgrade or lasting shift", dots, stroke=False, show_dots=True, dots_size=5)
    events = "; ".join(f"{days[number]}: {event}" for number, event in sorted(marks.items()))
    ends_text = f"{time(points[0].y)} on {days[0]}, {time(points[-1].y)} on {days[-1]}"
    return rendered(chart, title, f"{ends_text}; {events or 'no upgrade, no lasting shift'}")
