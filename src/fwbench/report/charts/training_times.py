"""Time of training: an epoch, the first one, all of them."""

from __future__ import annotations

from fwbench.records.units import time
from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group
from fwbench.report.training import epochs_s

SECTION = "training"
ORDER = 10


def draw(group: Group) -> Chart:
    """Three bars for each training."""
    series = {
        "an epoch": {name: record.median_s for name, record in group.records},
        "the first epoch": {name: epochs_s(record)[0] for name, record in group.records},
        "all epochs": {name: sum(epochs_s(record)) for name, record in group.records},
    }
    return bars.draw(f"{group.title}: time of training", series, time, group.looks)
