"""What a report shows at length: a part for each operation and device, each training, the rest."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fwbench.gate.statistics import interval
from fwbench.report import charts
from fwbench.report.charts import Chart, Point
from fwbench.report.records import Record, Run, foreign, labels, operations, trainings
from fwbench.report.units import time

_CONFIDENCE = 0.99

_OF_OPERATIONS = (
    *("case", "size", "median", "half of them", "dispatch", "first call", "against eager"),
    *("GFLOP/s", "GB/s", "measured"),
)
_OF_TRAININGS = (
    *("case", "an epoch", "first epoch", "all epochs", "a second", "accuracy", "last loss"),
    *("compiling", "CPUs busy", "peak memory", "measured"),
)
_FOREIGN = (
    "fwbench did not write these: framework, device, dispatch, verification and warm-up are not "
    "recorded, so they are listed and not compared."
)

#: What the rows of a table can be chosen by.
_KEYS = ("workload", "framework", "device", "execution")


@dataclass(frozen=True)
class Cell:
    """Of a table: what is shown, and what it is sorted by."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Row:
    """Of a table."""

    cells: Sequence[Cell]
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A table, and the charts above it; ``id`` is for links."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    caption: str = ""

    id: str = ""


def details(runs: Sequence[Run]) -> list[Part]:
    """All parts, in the order in which they are shown."""
    records = [record for run in runs for record in run.records]
    names = labels(runs)
    of_operations = _grouped(operations(records), "workload", "device", "direction", "dtype")
    of_trainings = _grouped(trainings(records), "workload", "device", "dtype", "size")
    found = [_operation(title, group, names) for title, group in of_operations.items()]
    found += [_training(title, group, names) for title, group in of_trainings.items()]
    others = foreign(records)
    return _linkable([*found, *([_others(others, names)] if others else [])])


def _linkable(found: Sequence[Part]) -> list[Part]:
    """With ids of their own, also where titles differ in signs alone."""
    taken: set[str] = set()
    linkable = []
    for part in found:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", f"part-{part.title}").strip("-")
        numbered = (f"{stem}-{number}" for number in itertools.count(2))
        free = next(name for name in itertools.chain([stem], numbered) if name not in taken)
        taken.add(free)
        linkable.append(replace(part, id=free))
    return linkable


def _grouped(records: Iterable[Record], *names: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(" ".join(str(record.facts.get(name)) for name in names), []).append(record)
    return found


def _operation(title: str, records: Sequence[Record], runs: Sequence[str]) -> Part:
    series: dict[str, list[Point]] = {}
    for record in records:
        low, high = record.quartiles_s
        point = Point(record.size, record.median_s, low, high, record.measured)
        series.setdefault(_line(record, runs), []).append(point)
    shown = [charts.lines(f"{title}: time against size", series, "size")]
    apart = _dispatch(title, records, runs)
    return Part(
        title,
        _OF_OPERATIONS,
        [_operation_row(record, records, runs) for record in records],
        [*shown, *([apart] if apart else [])],
    )


#: From this ratio of completion to dispatch on, both are drawn.
_APART = 2.0


def _dispatch(title: str, records: Sequence[Record], runs: Sequence[str]) -> Chart | None:
    """When calls returned beside when they were done, where that differs."""
    both: dict[str, list[Point]] = {}
    for record in records:
        if record.dispatch_s and record.completion_s / record.dispatch_s > _APART:
            for what, seconds in (("done", record.completion_s), ("returned", record.dispatch_s)):
                point = Point(record.size, seconds, seconds, seconds)
                both.setdefault(f"{_line(record, runs)}, {what}", []).append(point)
    return charts.lines(f"{title}: returned, and done", both, "size") if both else None


def _operation_row(record: Record, group: Sequence[Record], runs: Sequence[str]) -> Row:
    low, high = record.quartiles_s
    return Row(
        [
            Cell(_line(record, runs)),
            Cell(f"{record.size:,}", record.size),
            _time(record.median_s),
            Cell(f"{time(low)} to {time(high)}", low),
            _time(record.dispatch_s),
            _time(record.first_call_s),
            _against_eager(record, group),
            _rate(record.flops, record.median_s),
            _rate(record.bytes, record.median_s),
            Cell(record.measured, len(record.values_s)),
        ],
        _keys(record),
    )


def _against_eager(record: Record, group: Sequence[Record]) -> Cell:
    """How many times as fast as the same framework's eager execution, with an interval."""
    eager = [
        one
        for one in group
        if one.execution == "eager" and _but_execution(one) == _but_execution(record)
    ]
    if record.execution == "eager" or not eager:
        return Cell("")
    low, high = interval(record.values_s, eager[0].values_s, _CONFIDENCE, 0)
    ratio = eager[0].median_s / record.median_s
    return Cell(f"{ratio:.2f}x ({low:.2f} to {high:.2f})", ratio)


def _but_execution(record: Record) -> tuple[Any, ...]:
    return record.run, record.framework, record.size, record.facts["params"]


def _training(title: str, records: Sequence[Record], runs: Sequence[str]) -> Part:
    named: dict[str, Record] = {}
    for record in records:
        name = _line(record, runs)
        again = sum(other.partition(" #")[0] == name for other in named)
        named[f"{name} #{again + 1}" if again else name] = record
    seconds = {
        "an epoch": {name: one.median_s for name, one in named.items()},
        "the first epoch": {name: _epochs(one)[0] for name, one in named.items()},
        "all epochs": {name: sum(_epochs(one)) for name, one in named.items()},
    }
    accuracy = {n: value for n, one in named.items() if (value := _accuracy(one)) is not None}
    losses = {
        name: [epoch["train_loss"] for epoch in _first_training(one)] for name, one in named.items()
    }
    drawn = [
        charts.bars(f"{title}: time of training", seconds, time),
        charts.curves(f"{title}: training loss after each epoch", losses, "nats"),
    ]
    if accuracy:
        across = {name: (sum(_epochs(named[name])), value) for name, value in accuracy.items()}
        drawn += [
            charts.bars(f"{title}: test accuracy", {"accuracy": accuracy}, _percent),
            charts.scatter(f"{title}: time against accuracy", across, "all epochs", "accuracy"),
        ]
    return Part(
        f"training {title}",
        _OF_TRAININGS,
        [_training_row(name, record) for name, record in named.items()],
        drawn,
    )


def _training_row(name: str, record: Record) -> Row:
    epochs = _epochs(record)
    accuracy = _accuracy(record)
    rate = record.images_per_s or record.tokens_per_s
    memory = record.peak_host_memory_bytes
    busy = record.cpu_utilization
    last = _first_training(record)[-1]["train_loss"]
    return Row(
        [
            Cell(name),
            _time(record.median_s),
            Cell(f"{time(epochs[0])} ({record.first_epoch_excess or 0:+.0%})", epochs[0]),
            _time(sum(epochs)),
            Cell(f"{rate:,.0f}" if rate else "", rate),
            Cell("" if accuracy is None else _percent(accuracy), accuracy),
            Cell(f"{last:.4f}", last if math.isfinite(last) else None),
            _time(record.compile_s),
            Cell(f"{busy:.0%} of {record.threads}" if busy else "", busy),
            Cell(f"{memory / 2**30:.2f} GiB" if memory else "", memory),
            Cell(record.measured, len(record.values_s)),
        ],
        _keys(record),
    )


def _others(records: Sequence[Record], runs: Sequence[str]) -> Part:
    names = [f"{record.name}{_of_run(record, runs)}" for record in records]
    return Part(
        "other benchmarks",
        ("benchmark", "median", "half of them", "group", "measured"),
        [
            Row(
                [
                    Cell(name),
                    _time(record.median_s),
                    Cell(" to ".join(map(time, record.quartiles_s)), record.quartiles_s[0]),
                    Cell(record.group),
                    Cell(record.measured, len(record.values_s)),
                ]
            )
            for name, record in zip(names, records, strict=True)
        ],
        notes=[_FOREIGN],
    )


def _first_training(record: Record) -> list[Mapping[str, Any]]:
    """The epochs of the first of its repetitions."""
    first = record.epochs[0]["repetition"]
    return [epoch for epoch in record.epochs if epoch["repetition"] == first]


def _epochs(record: Record) -> list[float]:
    return [epoch["seconds"] for epoch in _first_training(record)]


def _accuracy(record: Record) -> float | None:
    """The test accuracy; the median of several trainings."""
    last = {one["repetition"]: one["accuracy"] for one in record.test_accuracy or ()}
    return statistics.median(last.values()) if last else None


def _line(record: Record, runs: Sequence[str]) -> str:
    return record.series + _of_run(record, runs)


def _of_run(record: Record, runs: Sequence[str]) -> str:
    return f" ({runs[record.run]})" if len(runs) > 1 else ""


def _keys(record: Record) -> dict[str, str]:
    return {name: str(record.facts[name]) for name in _KEYS if name in record.facts}


def _time(seconds: float | None) -> Cell:
    return Cell("" if seconds is None else time(seconds), seconds)


def _rate(work: float | None, seconds: float) -> Cell:
    """Work a second, in thousands of millions."""
    if not work:
        return Cell("")
    return Cell(f"{work / seconds / 1e9:,.3g}", work / seconds)


def _percent(share: float) -> str:
    return f"{share:.2%}"
