"""Benchmarks B and C: LeNet on MNIST, then and today."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.measurement import Measurement
from fwbench.report.model import trainings
from fwbench.report.section import Row, Section, TableCell, percent, seconds
from fwbench.report.training import accuracy, epochs_s
from fwbench_extras.studies.report_2020 import published

#: Workload, dtype, batch size and steps of an epoch.
_SETTING = ("lenet", "float32", 200, 240)

_NOTE = (
    "Graph stands for what the report called TensorFlow without XLA. Its seconds are CPU time over "
    "all threads, with validation in TensorFlow's and not in MXNet's; today's are wall-clock time "
    "of the updates alone."
)


def measured(records: Sequence[Measurement]) -> dict[tuple[str, str], Measurement]:
    """LeNet as it was trained then, by framework and execution: whole epochs of the real MNIST."""
    return {
        (record.facts.framework, record.facts.execution): record
        for record in trainings(records)
        if _setting_of(record) == _SETTING
        and record.facts.data
        and record.facts.data.source == "real"
        and not record.requested
    }


def _setting_of(record: Measurement) -> tuple[str, str, int, int | None]:
    facts = record.facts
    return facts.workload, facts.dtype, facts.size, facts.steps_per_epoch


def section(device: str, records: Sequence[Measurement]) -> Section:
    """Every training that was published or measured.

    Args:
        device: ``cpu`` or ``gpu``.
    """
    today = measured(records)
    rows = []
    for published_row in published.rows("lenet", device):
        case = published_row["framework"], published_row["execution"]
        epochs = int(published_row["epochs"])
        record = today.pop(case, None)
        if record is not None and len(epochs_s(record)) != epochs:
            today[case], record = record, None  # it belongs to another row
        then = float(published_row["median_total_s"]), float(published_row["median_accuracy"])
        rows.append(_row(device, " ".join(case), epochs, then, record))
    rows += [
        _row(device, record.contestant, len(epochs_s(record)), None, record)
        for record in today.values()
    ]
    return Section(
        f"2020, LeNet on the {device.upper()}",
        ("case", "epochs", "2020 (CPU time)", "accuracy", "today (wall clock)", "accuracy today"),
        rows,
        notes=[_NOTE],
    )


def _row(
    device: str, name: str, epochs: int, then: tuple[float, float] | None, now: Measurement | None
) -> Row:
    total_s, reached = then or (None, None)
    return Row(
        [
            TableCell(name),
            TableCell(str(epochs), epochs),
            seconds(total_s),
            _accuracy(reached),
            seconds(None if now is None else sum(epochs_s(now))),
            _accuracy(None if now is None else accuracy(now)),
        ],
        {"workload": "lenet", "device": device},
    )


def _accuracy(share: float | None) -> TableCell:
    return TableCell("" if share is None else percent(share), share)
