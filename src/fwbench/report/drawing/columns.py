"""Grouped upright bars with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pygal

from fwbench.report.drawing.chart import Chart, Point, blank, dot, rendered


def draw(
    title: str,
    series: Mapping[str, Mapping[str, Point]],
    y_title: str,
    show: Callable[[float], str],
) -> Chart:
    """A chart of a bar for each category and name.

    Args:
        title: of the chart.
        series: points by category, by name; where a point is on the horizontal axis is not used.
        y_title: label of the vertical axis.
        show: formats a value.
    """
    highest = max(point.high for points in series.values() for point in points.values())
    chart = blank(
        pygal.Bar,
        len(series),
        y_title=y_title,
        value_formatter=show,
        range=(0.0, highest * 1.05),
    )
    categories = list(dict.fromkeys(name for points in series.values() for name in points))
    chart.x_labels = categories
    for name, points in series.items():
        shown = (points.get(category) for category in categories)
        chart.add(name, [point and {**dot(point, show), "value": point.y} for point in shown])
    text = (
        f"{category}, {name}: {show(points[category].y)}"
        for category in categories
        for name, points in series.items()
        if category in points
    )
    return rendered(chart, title, "; ".join(text))
