"""Grouped horizontal bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pygal

from fwbench.report.drawing.chart import Chart, blank, rendered

#: About so many marks are below the bars of counts.
_MARKS = 8


def draw(
    title: str, series: Mapping[str, Mapping[str, float]], show: Callable[[float], str]
) -> Chart:
    """A chart of a bar for each category and name; with marks at whole numbers if all are counts.

    Args:
        title: of the chart.
        series: values by category, by name.
        show: formats a value.
    """
    categories = list(dict.fromkeys(name for values in series.values() for name in values))
    bars = len(categories) * len(series)
    chart = blank(pygal.HorizontalBar, len(series), bars=bars, value_formatter=show)
    chart.x_labels = categories
    values = [value for by_category in series.values() for value in by_category.values()]
    if all(isinstance(value, int) for value in values):
        most = max(values, default=0)
        chart.y_labels = range(0, int(most) + 1, max(1, math.ceil(most / _MARKS)))
    for name, by_category in series.items():
        chart.add(name, [by_category.get(category) for category in categories])
    text = [
        f"{category}, {name}: {show(by_category[category])}"
        for category in categories
        for name, by_category in series.items()
        if category in by_category
    ]
    return rendered(chart, title, "; ".join(text))
