"""What executions gain over the eager one, framework by framework."""

from __future__ import annotations

from fwbench.report.drawing import columns
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.group import Group
from fwbench.report.section import run_suffix, times

SECTION = "training"
ORDER = 20


def draw(group: Group) -> Chart | None:
    """A bar for each framework and execution; None where all are eager."""
    series: dict[str, dict[str, Point]] = {}
    for (_, record), gain in zip(group.records, group.gains, strict=True):
        if gain is not None:
            toggles = record.asked.values()
            framework = " ".join([str(record.facts.framework), *toggles])
            name = framework + run_suffix(record.run, group.runs)
            series.setdefault(str(record.facts.execution), {})[name] = gain
    if not series:
        return None
    title = f"{group.title}: how many times as fast as eager"
    return columns.draw(title, series, "times as fast", times)
