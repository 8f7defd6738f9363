"""Operations, steps and loaders: time against size, dispatch beside completion, executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fwbench.gate.statistics import interval
from fwbench.records.entry import work_of
from fwbench.report import charts
from fwbench.report.charts import Chart, Point
from fwbench.report.model import Record, Run, operations
from fwbench.report.sections.table import (
    Cell,
    Part,
    Row,
    billions,
    grouped,
    keys,
    line,
    seconds,
    share,
)
from fwbench.report.units import time

_CONFIDENCE = 0.99

_COLUMNS = (
    *("case", "size", "median", "half of them", "dispatch", "first call", "against eager"),
    *("GFLOP/s", "GB/s", "of attainable", "measured"),
)

#: From this ratio of completion to dispatch on, both are drawn.
_APART = 2.0


def parts(runs: Sequence[Run], names: Sequence[str]) -> list[Part]:
    """One for each operation, device, direction and dtype."""
    records = operations(record for run in runs for record in run.records)
    groups = grouped(records, "workload", "device", "direction", "dtype")
    return [_part(title, group, names) for title, group in groups.items()]


def _part(title: str, records: Sequence[Record], runs: Sequence[str]) -> Part:
    series: dict[str, list[Point]] = {}
    faster: dict[str, list[Point]] = {}
    rows = []
    for record in records:
        name = line(record, runs)
        low, high = record.quartiles_s
        point = Point(record.size, record.median_s, low, high, record.measured)
        series.setdefault(name, []).append(point)
        gain = over_eager(record, records)
        if gain is not None:
            faster.setdefault(name, []).append(gain)
        rows.append(_row(record, name, gain))
    drawn = [charts.lines(f"{title}: time against size", series, "size")]
    apart = _dispatch(title, records, runs)
    if apart:
        drawn.append(apart)
    if faster:
        what = f"{title}: how many times as fast as eager"
        drawn.append(charts.lines(what, faster, "size", "times as fast", times))
    return Part(title, _COLUMNS, rows, drawn)


def _row(record: Record, name: str, gain: Point | None) -> Row:
    low, high = record.quartiles_s
    against = Cell("")
    if gain is not None:
        ends = f" ({gain.low:.2f} to {gain.high:.2f})" if gain.low < gain.high else ""
        against = Cell(f"{gain.y:.2f}x{ends}", gain.y)
    return Row(
        [
            Cell(name),
            Cell(f"{record.size:,}", record.size),
            seconds(record.median_s),
            Cell(f"{time(low)} to {time(high)}", low),
            seconds(record.dispatch_s),
            seconds(record.first_call_s),
            against,
            billions(record.flops, record.median_s),
            billions(record.bytes, record.median_s),
            share(record.attainable_share),
            Cell(record.measured, record.number),
        ],
        keys(record),
    )


def _dispatch(title: str, records: Sequence[Record], runs: Sequence[str]) -> Chart | None:
    """When calls returned beside when they were done, where that differs."""
    both: dict[str, list[Point]] = {}
    for record in records:
        if record.dispatch_s and record.completion_s / record.dispatch_s > _APART:
            for what, value in (("done", record.completion_s), ("returned", record.dispatch_s)):
                point = Point(record.size, value, value, value)
                both.setdefault(f"{line(record, runs)}, {what}", []).append(point)
    return charts.lines(f"{title}: returned, and done", both, "size") if both else None


def over_eager(record: Record, group: Sequence[Record]) -> Point | None:
    """How many times as fast as the same framework's eager execution, with an interval.

    Args:
        record: of another execution.
        group: among which the eager one is; None is returned if it is not.
    """
    if record.execution == "eager":
        return None
    for eager in group:
        if eager.execution == "eager" and _but_execution(eager) == _but_execution(record):
            low, high = interval(record.values_s, eager.values_s, _CONFIDENCE, 0)
            return Point(record.size, eager.median_s / record.median_s, low, high, record.measured)
    return None


def _but_execution(record: Record) -> tuple[Any, ...]:
    return (
        record.run,
        record.framework,
        work_of(record.facts),
        record.steps_per_epoch,
        record.facts["params"],
    )


def times(ratio: float) -> str:
    """A ratio of times."""
    return f"{ratio:.3g}x"
