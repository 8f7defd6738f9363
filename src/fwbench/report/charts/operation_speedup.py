"""Gains of executions over the eager one, against size."""

from __future__ import annotations

from fwbench.records.units import times
from fwbench.report.drawing import lines, ranked
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.ranked import Bar
from fwbench.report.group import Group

SECTION = "operations"
ORDER = 30


def draw(group: Group) -> Chart | None:
    """A line of ratios for each execution, a bar of a single size; None where all are eager."""
    series: dict[str, list[Point]] = {}
    for (name, _), gain in zip(group.records, group.gains, strict=True):
        if gain is not None:
            series.setdefault(name, []).append(gain)
    if not series:
        return None
    title = f"{group.title}: how many times as fast as eager"
    if group.has_one_size:
        ordered = sorted(series.items(), key=lambda named: -named[1][0].y)
        bars = {name: Bar(gain) for name, (gain,) in ordered}
        return ranked.draw(title, bars, times, group.looks)
    return lines.draw(title, series, "size", None, times, looks=group.looks)
