"""Values from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pygal

from fwbench.report.drawing.chart import Chart, blank, rendered
from fwbench.report.drawing.palette import Look


def draw(
    title: str,
    series: Mapping[str, Sequence[float]],
    y_title: str,
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of a curve for each name.

    Args:
        title: of the chart.
        series: a value after each epoch, by name.
        y_title: label of the vertical axis.
        looks: of the curves, by their names.
    """
    chart = blank(
        pygal.Line,
        len(series),
        x_title="epoch",
        y_title=y_title,
        value_formatter="{:.3g}".format,
        dots_size=2,
    )
    chart.x_labels = [str(i + 1) for i in range(max(map(len, series.values())))]
    for name, values in series.items():
        chart.add(name, [*values])
    last = (f"{name} ends at {values[-1]:.4g}" for name, values in series.items())
    return rendered(chart, title, "; ".join(last), looks)
