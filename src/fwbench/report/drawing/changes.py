"""Changes in per cent with their intervals."""

from __future__ import annotations

from collections.abc import Mapping

import pygal

from fwbench.report.drawing.chart import Chart, Point, blank, dot, marks, rendered


def draw(title: str, series: Mapping[str, Mapping[str, Point]]) -> Chart:
    """A chart of a horizontal bar for each name, downwards in their order.

    Args:
        title: of the chart.
        series: changes in per cent by name, by verdict.
    """
    names = [name for points in series.values() for name in points]
    points = [point for by_name in series.values() for point in by_name.values()]
    low, high = min(0.0, *(p.low for p in points)), max(0.0, *(p.high for p in points))
    room = 0.05 * (high - low)
    chart = blank(
        pygal.HorizontalStackedBar,
        len(series),
        bars=len(names),
        labels=names,
        y_labels=marks(low, high, names),
        value_formatter=_percent,
        range=(low - room, high + room),
    )
    chart.x_labels = names[::-1]  # pygal begins at the bottom
    for verdict, by_name in series.items():
        shown = (by_name.get(name) for name in names[::-1])
        chart.add(
            verdict, [point and {**dot(point, _percent), "value": point.y} for point in shown]
        )
    text = (
        f"{name} {verdict}, {_percent(point.y)}"
        for verdict, by_name in series.items()
        for name, point in by_name.items()
    )
    return rendered(chart, title, "; ".join(text))


def _percent(value: float) -> str:
    return f"{value:+.3g} %"
