"""Grouped horizontal bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pygal

from fwbench.report.drawing.chart import Chart, blank, marks, rendered
from fwbench.report.drawing.palette import Look

#: About so many marks are below the bars of counts.
_MARKS = 8


def draw(
    title: str,
    series: Mapping[str, Mapping[str, float]],
    show: Callable[[float], str],
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of a bar for each category and name; with marks at whole numbers if all are counts.

    Args:
        title: of the chart.
        series: values by category, by name.
        show: formats a value.
        looks: of the categories, or of the series, by their names.
    """
    categories = list(dict.fromkeys(name for values in series.values() for name in values))
    bars = len(categories) * len(series)
    chart = blank(
        pygal.HorizontalBar, len(series), bars=bars, labels=categories, value_formatter=show
    )
    chart.x_labels = categories
    values = [value for by_category in series.values() for value in by_category.values()]
    if all(isinstance(value, int) for value in values):
        most = max(values, default=0)
        chart.y_labels = range(0, int(most) + 1, max(1, math.ceil(most / _MARKS)))
    elif values:
        chart.y_labels = marks(min(0.0, *values), max(0.0, *values), categories)
    for name, by_category in series.items():
        chart.add(name, [_bar(category, by_category, looks or {}) for category in categories])
    text = [
        f"{category}, {name}: {show(by_category[category])}"
        for category in categories
        for name, by_category in series.items()
        if category in by_category
    ]
    return rendered(chart, title, "; ".join(text), looks)


def _bar(
    category: str, values: Mapping[str, float], looks: Mapping[str, Look]
) -> dict[str, Any] | None:
    """A bar as pygal takes it; None where there is no value."""
    look = looks.get(category)
    node = look.attributes if look is not None else {}
    return {"value": values[category], "node": node} if category in values else None
