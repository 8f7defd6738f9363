"""A point for each name: a time across, a share up."""

from __future__ import annotations

from collections.abc import Mapping

import pygal

from fwbench.records.units import time
from fwbench.report.drawing.chart import Chart, blank, rendered
from fwbench.report.drawing.palette import Look


def draw(
    title: str,
    points: Mapping[str, tuple[float, float]],
    x_title: str,
    y_title: str,
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of points: a share against seconds.

    Args:
        title: of the chart.
        points: seconds and a share (0 to 1), by name.
        x_title: label of the horizontal axis.
        y_title: label of the vertical axis.
        looks: of the points, by their names.
    """
    chart = blank(
        pygal.XY,
        len(points),
        x_title=x_title,
        y_title=y_title,
        stroke=False,
        dots_size=7,
        value_formatter=lambda share: f"{share:.2%}",
        x_value_formatter=time,
    )
    for name, point in points.items():
        chart.add(name, [{"value": point, "label": name}])
    text = (f"{name} {time(time_s)}, {share:.2%}" for name, (time_s, share) in points.items())
    return rendered(chart, title, "; ".join(text), looks)
