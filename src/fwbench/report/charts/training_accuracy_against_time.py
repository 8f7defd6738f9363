"""Time against accuracy."""

from __future__ import annotations

from fwbench.report.drawing import scatter
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group
from fwbench.report.training import accuracy, epochs_s

SECTION = "training"
ORDER = 50


def draw(group: Group) -> Chart | None:
    """A point for each training that was tested; None where none was."""
    points = {
        name: (sum(epochs_s(record)), value)
        for name, record in group.records
        if (value := accuracy(record)) is not None
    }
    if not points:
        return None
    title = f"{group.title}: time against accuracy"
    return scatter.draw(title, points, "all epochs", "accuracy", group.looks)
