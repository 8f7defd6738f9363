"""Time against size; of a single size a bar for each contestant."""

from __future__ import annotations

from fwbench.records.measurement import Measurement
from fwbench.records.units import time
from fwbench.report.drawing import lines, ranked
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.ranked import Bar
from fwbench.report.group import Group
from fwbench.report.ranking.condition import early, marked
from fwbench.report.speedup import point_label

SECTION = "operations"
ORDER = 10


def draw(group: Group) -> Chart:
    """Median times of each framework and execution."""
    if group.has_one_size:
        return _bars(group)
    series: dict[str, list[Point]] = {}
    for name, record in group.records:
        series.setdefault(name, []).append(_point(record))
    return lines.draw(f"{group.title}: time against size", series, "size", looks=group.looks)


def _bars(group: Group) -> Chart:
    """The fastest first; in a lighter tone until the call returned, where that was early."""
    ordered = sorted(group.records, key=lambda named: named[1].median_s)
    bars = {name: Bar(_point(record), _returned_s(record)) for name, record in ordered}
    size = group.records[0][1].facts.size_text
    parts = ("done", "call returned")
    return ranked.draw(f"{group.title}: time at size {size}", bars, time, group.looks, parts)


def _point(record: Measurement) -> Point:
    label = marked(point_label(record), record.facts)
    return Point(record.facts.size, record.median_s, *record.quartiles_s, label)


def _returned_s(record: Measurement) -> float:
    returned_s, _ = early(record.facts) or (0.0, 0.0)
    return min(returned_s, record.median_s)
