"""Training loss after each epoch."""

from __future__ import annotations

from fwbench.report.drawing import curves
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group
from fwbench.report.training import deviation_text, losses

SECTION = "training"
ORDER = 30


def draw(group: Group) -> Chart:
    """A curve for each training; the title says how far they lie apart."""
    series = {name: losses(record) for name, record in group.records}
    what = f"{group.title}: training loss after each epoch{deviation_text(series)}"
    return curves.draw(what, series, "nats", group.looks)
