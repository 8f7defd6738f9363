"""Whole trainings: time, losses, accuracy, memory, and what batch sizes and workers do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fwbench.records.entry import work_of
from fwbench.report import charts
from fwbench.report.charts import Chart, Point
from fwbench.report.loops import largest_deviation
from fwbench.report.model import Record, Run, trainings
from fwbench.report.sections.operations import over_eager, times
from fwbench.report.sections.table import (
    Cell,
    Part,
    Row,
    grouped,
    keys,
    line,
    of_run,
    percent,
    seconds,
)
from fwbench.report.units import time

_COLUMNS = (
    *("case", "an epoch", "first epoch", "all epochs", "a second", "accuracy", "last loss"),
    *("compiling", "CPUs busy", "peak memory", "measured"),
)

_OFF = "eager"


def parts(runs: Sequence[Run], names: Sequence[str]) -> list[Part]:
    """One for each model, device, dtype and batch size; then one for each model over all these."""
    records = trainings(record for run in runs for record in run.records)
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((*work_of(record.facts), record.steps_per_epoch), []).append(record)
    found = [_part(_title(group[0]), group, names) for group in groups.values()]
    for name, group in grouped(records, "workload").items():
        found += _by_batch(name, group, names)
        found += _across(name, group, names)
    return found


def _title(record: Record) -> str:
    parts = (record.workload, record.device, record.dtype, record.size)
    return " ".join(map(str, parts)) + _made_up(record)


def _made_up(record: Record) -> str:
    """What is said of trainings on generated data."""
    return " synthetic" if (record.data or {}).get("source") == "synthetic" else ""


def _part(title: str, records: Sequence[Record], runs: Sequence[str]) -> Part:
    named: dict[str, Record] = {}
    for record in records:
        name = line(record, runs)
        again = sum(other.partition(" #")[0] == name for other in named)
        named[f"{name} #{again + 1}" if again else name] = record
    return Part(
        f"training {title}",
        _COLUMNS,
        [_row(name, record) for name, record in named.items()],
        _charts(title, named, runs),
    )


def _charts(title: str, named: Mapping[str, Record], runs: Sequence[str]) -> list[Chart]:
    spent_s = {
        "an epoch": {name: one.median_s for name, one in named.items()},
        "the first epoch": {name: epochs_of(one)[0] for name, one in named.items()},
        "all epochs": {name: sum(epochs_of(one)) for name, one in named.items()},
    }
    losses = {
        name: [epoch["train_loss"] for epoch in _first_training(one)] for name, one in named.items()
    }
    drawn = [charts.bars(f"{title}: time of training", spent_s, time)]
    faster = _over_eager(title, list(named.values()), runs)
    if faster:
        drawn.append(faster)
    what = f"{title}: training loss after each epoch{_deviation(named)}"
    drawn.append(charts.curves(what, losses, "nats"))
    accuracy = {n: value for n, one in named.items() if (value := accuracy_of(one)) is not None}
    if accuracy:
        across = {name: (sum(epochs_of(named[name])), value) for name, value in accuracy.items()}
        drawn += [
            charts.bars(f"{title}: test accuracy", {"accuracy": accuracy}, percent),
            charts.scatter(f"{title}: time against accuracy", across, "all epochs", "accuracy"),
        ]
    memory = {
        what: {n: value for n, one in named.items() if (value := one.facts.get(fact))}
        for what, fact in (
            ("of the process", "peak_host_memory_bytes"),
            ("of the device", "peak_device_memory_bytes"),
        )
    }
    if any(memory.values()):
        shown = {what: found for what, found in memory.items() if found}
        drawn.append(charts.bars(f"{title}: peak memory", shown, _gib))
    return drawn


def _over_eager(title: str, records: Sequence[Record], runs: Sequence[str]) -> Chart | None:
    """What each execution gains, framework by framework."""
    series: dict[str, dict[str, Point]] = {}
    for record in records:
        gain = over_eager(record, records)
        if gain is not None:
            toggles = record.facts["params"].values()
            framework = " ".join([str(record.framework), *toggles]) + of_run(record, runs)
            series.setdefault(str(record.execution), {})[framework] = gain
    if not series:
        return None
    what = f"{title}: how many times as fast as eager"
    return charts.columns(what, series, "times as fast", times)


def _deviation(named: Mapping[str, Record]) -> str:
    """How far the curves lie apart, where there are several of the same work."""
    curves = {
        name: [epoch["train_loss"] for epoch in _first_training(one)] for name, one in named.items()
    }
    if not all(math.isfinite(loss) for curve in curves.values() for loss in curve):
        return ""
    found = largest_deviation(curves)
    if found is None:
        return ""
    deviation, epoch, (one, other) = found
    return f" (at most {deviation:.2g} nats apart: {one} and {other}, epoch {epoch})"


def _row(name: str, record: Record) -> Row:
    epochs = epochs_of(record)
    accuracy = accuracy_of(record)
    rate = record.images_per_s or record.tokens_per_s
    memory = record.peak_host_memory_bytes
    busy = record.cpu_utilization
    last = _first_training(record)[-1]["train_loss"]
    return Row(
        [
            Cell(name),
            seconds(record.median_s),
            Cell(f"{time(epochs[0])} ({record.first_epoch_excess or 0:+.0%})", epochs[0]),
            seconds(sum(epochs)),
            Cell(f"{rate:,.0f}" if rate else "", rate),
            Cell("" if accuracy is None else percent(accuracy), accuracy),
            Cell(f"{last:.4f}", last if math.isfinite(last) else None),
            seconds(record.compile_s),
            Cell(f"{busy:.0%} of {record.threads}" if busy else "", busy),
            Cell(_gib(memory) if memory else "", memory),
            Cell(record.measured, record.number),
        ],
        keys(record),
    )


def _by_batch(name: str, records: Sequence[Record], runs: Sequence[str]) -> list[Part]:
    """Epoch time by batch size, and by what is in a toggle such as the workers of the loader."""
    batches = sorted({record.size for record in records})
    settings = {tuple(record.facts["params"].items()) for record in records}
    if len(batches) == 1 and len(settings) == 1:
        return []
    found: dict[str, dict[int, Record]] = {}
    for record in records:
        called = f"{line(record, runs)}, {record.device} {record.dtype}{_made_up(record)}"
        found.setdefault(called, {})[record.size] = record
    rows = [
        Row(
            [
                Cell(called),
                *(seconds(by[batch].median_s if batch in by else None) for batch in batches),
            ],
            keys(next(iter(by.values()))),
        )
        for called, by in found.items()
    ]
    series = {
        called: [Point(b, one.median_s, *one.quartiles_s, one.measured) for b, one in by.items()]
        for called, by in found.items()
    }
    title = f"training {name}: time of an epoch by batch size and loader workers"
    drawn = charts.lines(title, series, "batch size", "time of an epoch")
    return [Part(title, ["case", *(f"batch {batch}" for batch in batches)], rows, [drawn])]


def _across(name: str, records: Sequence[Record], runs: Sequence[str]) -> list[Part]:
    """Time against accuracy with optimisation on and off, on every device, where there are two."""
    if len({record.device for record in records}) == 1:
        return []
    found = {
        f"{line(one, runs)}, {one.device} {one.dtype} {one.size}{_made_up(one)}, optimisation "
        f"{_optimisation(one)}": (
            sum(epochs_of(one)),
            accuracy,
        )
        for one in records
        if (accuracy := accuracy_of(one)) is not None
    }
    if not found:
        return []
    title = f"training {name}: time against accuracy on every device"
    rows = [
        Row([Cell(called), seconds(spent_s), Cell(percent(accuracy), accuracy)])
        for called, (spent_s, accuracy) in found.items()
    ]
    drawn = charts.scatter(title, found, "all epochs", "accuracy")
    return [Part(title, ("case", "all epochs", "accuracy"), rows, [drawn])]


def _optimisation(record: Record) -> str:
    return "off" if record.execution == _OFF else "on"


def _first_training(record: Record) -> list[Mapping[str, Any]]:
    """The epochs of the first of its repetitions."""
    first = record.epochs[0]["repetition"]
    return [epoch for epoch in record.epochs if epoch["repetition"] == first]


def epochs_of(record: Record) -> list[float]:
    """Seconds of every epoch of the first training, warm-up epochs among them."""
    return [epoch["seconds"] for epoch in _first_training(record)]


def accuracy_of(record: Record) -> float | None:
    """The test accuracy; the median of several trainings."""
    last = {one["repetition"]: one["accuracy"] for one in record.test_accuracy or ()}
    return statistics.median(last.values()) if last else None


def _gib(memory_bytes: float) -> str:
    return f"{memory_bytes / 2**30:.2f} GiB"
