"""Time against size."""

from __future__ import annotations

from fwbench.report.drawing import lines
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.group import Group
from fwbench.report.ranking.condition import marked

SECTION = "operations"
ORDER = 10


def draw(group: Group) -> Chart:
    """A line of median times for each framework and execution."""
    series: dict[str, list[Point]] = {}
    for name, record in group.records:
        label = marked(record.point_label, record.facts)
        point = Point(record.facts.size, record.median_s, *record.quartiles_s, label)
        series.setdefault(name, []).append(point)
    return lines.draw(f"{group.title}: time against size", series, "size")
