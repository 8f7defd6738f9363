"""Peak memory of the process and of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fwbench.records.facts import CaseFacts
from fwbench.records.units import mebibytes
from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group

SECTION = "training"
ORDER = 60

_PEAKS: Mapping[str, Callable[[CaseFacts], int | None]] = {
    "of the process": lambda facts: facts.memory_above_bytes,
    "of the device": lambda facts: facts.peak_device_memory_bytes,
}


def draw(group: Group) -> Chart | None:
    """Up to two bars for each training; None where no memory is known."""
    series = {
        # Whole numbers are drawn as counts, with more marks than there is room for in MiB.
        what: {
            name: float(value)
            for name, record in group.records
            if (value := peak_bytes(record.facts))
        }
        for what, peak_bytes in _PEAKS.items()
    }
    known = {what: values for what, values in series.items() if values}
    if not known:
        return None
    title = f"{group.title}: peak memory above what was held before"
    return bars.draw(title, known, mebibytes, group.looks)
