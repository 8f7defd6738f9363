"""Benchmarks B and C: LeNet on MNIST, then and today."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from fwbench.records.measurement import Measurement
from fwbench.records.units import percent
from fwbench.report.drawing import bars
from fwbench.report.model import trainings
from fwbench.report.section import Row, Section, TableCell, seconds
from fwbench.report.training import accuracy, epochs_s
from fwbench_extras.studies.report_2020 import published
from fwbench_extras.studies.report_2020.operations import times

#: Framework, execution and number of epochs.
Case = tuple[str, str, int]

#: Workload, dtype, batch size and steps of an epoch.
_SETTING = ("lenet", "float32", 200, 240)

_NOTE = (
    "Graph stands for what the report called TensorFlow without XLA. Its seconds are CPU time over "
    "all threads, with validation in TensorFlow's and not in MXNet's; today's are wall-clock time "
    "of the updates alone."
)


#: What others are drawn relative to.
_DRAWN_AS_1 = ("tensorflow", "graph")


def measured(records: Sequence[Measurement]) -> dict[Case, Measurement]:
    """LeNet as it was trained then: whole epochs of the real MNIST."""
    return {
        (record.facts.framework, record.facts.execution, len(epochs_s(record))): record
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
    then = {
        (row["framework"], row["execution"], int(row["epochs"])): (
            float(row["median_total_s"]),
            float(row["median_accuracy"]),
        )
        for row in published.rows("lenet", device)
    }
    then_s = {case: total_s for case, (total_s, _) in then.items()}
    today_s = {case: _total_s(record) for case, record in today.items()}
    epochs = _drawn_epochs(then_s, today_s)
    chart = bars.draw(
        f"2020, LeNet on the {device.upper()}, {epochs} epochs: time over TensorFlow's graph",
        {"2020, published": _relative(then_s, epochs), "today": _relative(today_s, epochs)},
        times,
    )
    return Section(
        f"2020, LeNet on the {device.upper()}",
        ("case", "epochs", "2020 (CPU time)", "accuracy", "today (wall clock)", "accuracy today"),
        [_row(device, case, then.get(case), today.get(case)) for case in {**then, **today}],
        [chart] if today else [],
        [_NOTE],
    ).compact


def _total_s(record: Measurement) -> float:
    """Seconds of all epochs: of those of the statistics the median over the launches."""
    every = epochs_s(record)
    timed_s = [launch.rounds_s or [] for launch in record.facts.launches or ()]
    if not timed_s or not all(timed_s):
        return sum(every)
    return sum(every[: -len(timed_s[0])]) + statistics.median(map(sum, timed_s))


def _drawn_epochs(*of_both: Mapping[Case, float]) -> int:
    """The most epochs that TensorFlow's graph had then and today, or at any time."""
    then, today = ({n for *case, n in cases if (*case,) == _DRAWN_AS_1} for cases in of_both)
    return max(then & today or then | today)


def _relative(totals_s: Mapping[Case, float], epochs: int) -> dict[str, float]:
    """Times over that of TensorFlow's graph after as many epochs, where that is known."""
    of_1_s = totals_s.get((*_DRAWN_AS_1, epochs))
    return {
        f"{framework} {execution}": total_s / of_1_s
        for (framework, execution, n), total_s in totals_s.items()
        if of_1_s and n == epochs and (framework, execution) != _DRAWN_AS_1
    }


def _row(device: str, case: Case, then: tuple[float, float] | None, now: Measurement | None) -> Row:
    framework, execution, epochs = case
    total_s, reached = then or (None, None)
    return Row(
        [
            TableCell(f"{framework} {execution}"),
            TableCell(str(epochs), epochs),
            seconds(total_s),
            _accuracy(reached),
            seconds(None if now is None else _total_s(now)),
            _accuracy(None if now is None else accuracy(now)),
        ],
        {"workload": "lenet", "device": device},
    )


def _accuracy(share: float | None) -> TableCell:
    return TableCell("" if share is None else percent(share), share)
