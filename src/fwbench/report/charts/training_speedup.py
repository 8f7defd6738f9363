"""Gains of executions over the eager one, training by training."""

from __future__ import annotations

from fwbench.records.units import times
from fwbench.report.drawing import ranked
from fwbench.report.drawing.chart import Chart
from fwbench.report.drawing.ranked import Bar
from fwbench.report.group import Group

SECTION = "training"
ORDER = 20


def draw(group: Group) -> Chart | None:
    """A bar for each framework and execution, the largest gain first; None where all are eager."""
    gains = {
        name: gain
        for (name, _), gain in zip(group.records, group.gains, strict=True)
        if gain is not None
    }
    if not gains:
        return None
    ordered = sorted(gains.items(), key=lambda named: -named[1].y)
    title = f"{group.title}: how many times as fast as eager"
    return ranked.draw(title, {name: Bar(gain) for name, gain in ordered}, times, group.looks)
