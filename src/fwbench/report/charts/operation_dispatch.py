"""When calls returned, and when they were done, where that differs."""

from __future__ import annotations

from fwbench.report.drawing import lines
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.group import Group

SECTION = "operations"
ORDER = 20

#: From this ratio of completion to dispatch on, both are drawn.
_APART = 2.0


def draw(group: Group) -> Chart | None:
    """Two lines for each framework and execution whose calls return early; None if none does."""
    series: dict[str, list[Point]] = {}
    for name, record in group.records:
        done_s, returned_s = record.facts.completion_s, record.facts.dispatch_s
        if done_s and returned_s and done_s / returned_s > _APART:
            for what, value in (("done", done_s), ("returned", returned_s)):
                point = Point(record.facts.size, value, value, value, record.facts.shape or "")
                series.setdefault(f"{name}, {what}", []).append(point)
    return lines.draw(f"{group.title}: returned, and done", series, "size") if series else None
