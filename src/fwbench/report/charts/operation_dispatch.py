"""When calls returned, and when they were done, where that differs."""

from __future__ import annotations

from fwbench.report.drawing import lines
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.group import Group
from fwbench.report.ranking.condition import early

SECTION = "operations"
ORDER = 20


def draw(group: Group) -> Chart | None:
    """Two lines for each framework and execution whose calls return early; None if none does.

    Until the call returned is drawn in a lighter tone. Bars of a single size show both.
    """
    series: dict[str, list[Point]] = {}
    looks: dict[str, Look] = {}
    for name, record in group.records if not group.has_one_size else ():
        times_s = early(record.facts)
        if times_s is None:
            continue
        dark = group.looks[name]
        for what, look, value in zip(
            ("returned", "done"), (dark.lighter, dark), times_s, strict=True
        ):
            looks[f"{name}, {what}"] = look
            point = Point(record.facts.size, value, value, value, record.facts.shape or "")
            series.setdefault(f"{name}, {what}", []).append(point)
    if not series:
        return None
    title = f"{group.title}: returned (lighter), and done"
    return lines.draw(title, series, "size", looks=looks)
