"""Benchmarks B and C: LeNet on MNIST, then and today."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.report.model import Record, trainings
from fwbench.report.sections.table import Cell, Part, Row, percent, seconds
from fwbench.report.sections.training import accuracy_of, epochs_of
from fwbench.studies.report_2020 import published

#: Workload, dtype, batch size and steps of an epoch.
_SETTING = ("lenet", "float32", 200, 240)

_NOTE = (
    "Graph stands for what the report called TensorFlow without XLA. Its seconds are CPU time over "
    "all threads, with validation in TensorFlow's and not in MXNet's; today's are wall-clock time "
    "of the updates alone."
)


def measured(records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    """LeNet as it was trained then, by framework and execution: whole epochs of the real MNIST."""
    return {
        (one.framework, one.execution): one
        for one in trainings(records)
        if (one.workload, one.dtype, one.size, one.steps_per_epoch) == _SETTING
        and (one.data or {}).get("source") == "real"
        and not one.facts["params"]
    }


def part(device: str, records: Sequence[Record]) -> Part:
    """Every training that was published or measured.

    Args:
        device: ``cpu`` or ``gpu``.
        records: measured on it.
    """
    ours = measured(records)
    rows = []
    for row in published.rows("lenet", device):
        one = ours.pop((row["framework"], row["execution"]), None)
        epochs = int(row["epochs"])
        if one is not None and len(epochs_of(one)) != epochs:
            ours[one.framework, one.execution] = one  # it is of another row
            one = None
        rows.append(
            _row(
                f"{row['framework']} {row['execution']}",
                epochs,
                (float(row["median_total_s"]), float(row["median_accuracy"])),
                one,
            )
        )
    rows += [_row(one.series, len(epochs_of(one)), None, one) for one in ours.values()]
    return Part(
        f"2020, LeNet on the {device.upper()}",
        ("case", "epochs", "2020 (CPU time)", "accuracy", "today (wall clock)", "accuracy today"),
        [Row(row.cells, {**row.keys, "device": device}) for row in rows],
        notes=[_NOTE],
    )


def _row(name: str, epochs: int, then: tuple[float, float] | None, now: Record | None) -> Row:
    total_s, accuracy = then or (None, None)
    reached = None if now is None else accuracy_of(now)
    return Row(
        [
            Cell(name),
            Cell(str(epochs), epochs),
            seconds(total_s),
            Cell("" if accuracy is None else percent(accuracy), accuracy),
            seconds(None if now is None else sum(epochs_of(now))),
            Cell("" if reached is None else percent(reached), reached),
        ],
        {"workload": "lenet"},
    )
