"""Peak memory of the process and of the device."""

from __future__ import annotations

from fwbench.records.units import gibibytes
from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group

SECTION = "training"
ORDER = 60

_FACTS = {
    "of the process": "peak_host_memory_bytes",
    "of the device": "peak_device_memory_bytes",
}


def draw(group: Group) -> Chart | None:
    """Up to two bars for each training; None where no memory is known."""
    series = {
        what: {name: value for name, record in group.records if (value := record.facts.get(fact))}
        for what, fact in _FACTS.items()
    }
    known = {what: values for what, values in series.items() if values}
    return bars.draw(f"{group.title}: peak memory", known, gibibytes) if known else None
