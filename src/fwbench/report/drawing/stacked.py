"""Horizontal bars that are made of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pygal

from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import Chart, blank, marks, rendered


def draw(
    title: str,
    bars: Mapping[str, Mapping[str, float]],
    parts: Sequence[str],
    show: Callable[[float], str],
) -> Chart:
    """A chart of a bar for each name, downwards in their order.

    Args:
        title: of the chart.
        bars: values by part, by name.
        parts: every part that a chart of this kind can have; each has its colour in all charts.
        show: formats a value.
    """
    looks = palette.parts(parts)
    used = [part for part in parts if any(values.get(part) for values in bars.values())]
    longest = max(sum(values.values()) for values in bars.values())
    chart = blank(
        pygal.HorizontalStackedBar,
        len(used),
        bars=len(bars),
        labels=bars,
        y_labels=marks(0.0, longest, bars),
        value_formatter=show,
        range=(0.0, longest),
    )
    upwards = [*bars][::-1]  # pygal begins at the bottom
    chart.x_labels = upwards
    for part in used:
        chart.add(part, [bars[name].get(part) for name in upwards])
    text = "; ".join(f"{name}: {_parts(values, used, show)}" for name, values in bars.items())
    return rendered(chart, title, text, looks)


def _parts(values: Mapping[str, float], parts: Sequence[str], show: Callable[[float], str]) -> str:
    return ", ".join(f"{part} {show(values[part])}" for part in parts if values.get(part))
