"""Test accuracy."""

from __future__ import annotations

from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group
from fwbench.report.section import percent
from fwbench.report.training import accuracy

SECTION = "training"
ORDER = 40


def draw(group: Group) -> Chart | None:
    """A bar for each training that was tested; None where none was."""
    values = {
        name: value for name, record in group.records if (value := accuracy(record)) is not None
    }
    if not values:
        return None
    return bars.draw(f"{group.title}: test accuracy", {"accuracy": values}, percent, group.looks)
