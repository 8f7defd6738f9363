"""Benchmark A: TensorFlow's time over MXNet's, then and today. Above 1, MXNet takes less."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fwbench.records.measurement import Measurement
from fwbench.report.drawing import bars
from fwbench.report.section import Row, Section, TableCell
from fwbench_extras.studies.report_2020 import published


@dataclass(frozen=True)
class Ratios:
    """TensorFlow's time over MXNet's, for one operation and size.

    Attributes:
        operation: its name.
        size: of the vectors, or one side of the matrices.
        published: of 2020.
        dispatch: today, until the calls returned; None where it was not measured.
        completion: today, until the work was done.
    """

    operation: str
    size: int
    published: float
    dispatch: float | None
    completion: float | None


#: The columns of the tables, and the ratio in each.
_SHOWN: Mapping[str, Callable[[Ratios], float | None]] = {
    "2020, published": lambda ratios: ratios.published,
    "today, until calls returned": lambda ratios: ratios.dispatch,
    "today, until the work was done": lambda ratios: ratios.completion,
}

_NOTE = (
    "Above 1, MXNet takes less. Eager executions, float32, the dimensions of the report. The "
    "published figures are CPU time until the calls returned."
)


def ratios(device: str, records: Iterable[Measurement]) -> list[Ratios]:
    """The ratios of every operation and size that was published.

    Args:
        device: ``cpu`` or ``gpu``.
    """
    today = {
        (record.facts.workload, record.facts.size, record.facts.framework): record
        for record in records
        if _is_comparable(record)
    }
    then_s = {
        (row["operation"], int(row["size"]), row["framework"]): float(row["median_s"])
        for row in published.rows("operations", device)
    }
    return [
        _ratios(operation, size, then_s, today)
        for operation, size in dict.fromkeys((name, size) for name, size, _ in then_s)
    ]


def _is_comparable(record: Measurement) -> bool:
    facts = record.facts
    how = (facts.execution, facts.dtype, facts.direction)
    known = bool(facts.dispatch_s and facts.completion_s)
    return how == ("eager", "float32", "forward") and not record.requested and known


#: An operation, a size and a framework.
_Place = tuple[str, int, str]


def _ratios(
    operation: str, size: int, then_s: Mapping[_Place, float], today: Mapping[_Place, Measurement]
) -> Ratios:
    tensorflow, mxnet = ((operation, size, framework) for framework in ("tensorflow", "mxnet"))
    then = then_s[tensorflow] / then_s[mxnet]
    numerator, denominator = today.get(tensorflow), today.get(mxnet)
    if numerator is None or denominator is None:
        return Ratios(operation, size, then, None, None)
    pairs = zip(_times_s(numerator), _times_s(denominator), strict=True)
    dispatch, completion = (tensorflow_s / mxnet_s for tensorflow_s, mxnet_s in pairs)
    return Ratios(operation, size, then, dispatch, completion)


def _times_s(record: Measurement) -> tuple[float, float]:
    """Dispatch and completion time of a record that has both."""
    assert record.facts.dispatch_s and record.facts.completion_s  # noqa: S101, PT018 (_is_comparable)
    return record.facts.dispatch_s, record.facts.completion_s


def by_operation(ratios: Iterable[Ratios]) -> dict[str, list[Ratios]]:
    """The ratios of each operation, over its sizes."""
    groups = itertools.groupby(ratios, lambda ratios: ratios.operation)
    return {name: [*group] for name, group in groups}


def sections(device: str, ratios: Sequence[Ratios]) -> list[Section]:
    """All operations in one table, and all that was measured size by size in another.

    Args:
        device: ``cpu`` or ``gpu``.
    """
    by = by_operation(ratios)
    # Of the sizes that were measured, so that all columns are about the same sizes.
    measured = {
        name: [entry for entry in group if entry.completion is not None]
        for name, group in by.items()
    }
    about = {name: measured[name] or group for name, group in by.items()}
    shown = {what: ratio for what, ratio in _SHOWN.items() if any(map(ratio, ratios))}
    title = f"2020, operations on the {device.upper()}: TensorFlow's time over MXNet's"
    rows = [
        Row(
            [
                TableCell(name),
                TableCell(f"{len(measured[name])} of {len(group)}"),
                *(_mean_and_range([*map(ratio, about[name])]) for ratio in shown.values()),
            ],
            {"workload": name, "device": device},
        )
        for name, group in by.items()
    ]
    columns = ("operation", "sizes measured", *(f"{what} (range)" for what in shown))
    chart = bars.draw(title, _means(about), times)
    return [
        Section(title, columns, rows, [chart] if any(measured.values()) else [], [_NOTE]),
        *_size_by_size(title, device, [entry for entry in ratios if entry.completion is not None]),
    ]


def _means(about: Mapping[str, Sequence[Ratios]]) -> dict[str, dict[str, float]]:
    """The means of each column's ratios by operation, where there are any."""
    series = {
        what: {name: value for name, group in about.items() if (value := mean(map(ratio, group)))}
        for what, ratio in _SHOWN.items()
    }
    return {what: values for what, values in series.items() if values}


def _size_by_size(title: str, device: str, measured: Sequence[Ratios]) -> list[Section]:
    rows = [
        Row(
            [
                TableCell(f"{ratios.operation} {ratios.size:,}"),
                *(TableCell(times(ratio(ratios)), ratio(ratios)) for ratio in _SHOWN.values()),
            ],
            {"workload": ratios.operation, "device": device},
        )
        for ratios in measured
    ]
    return [Section(f"{title}, size by size", ("operation", *_SHOWN), rows)] if rows else []


def mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def _mean_and_range(values: Sequence[float | None]) -> TableCell:
    middle, known = mean(values), [value for value in values if value is not None]
    if middle is None:
        return TableCell("not measured")
    return TableCell(f"{times(middle)} ({times(min(known))} to {times(max(known))})", middle)


def times(ratio: float | None) -> str:
    """A ratio of times such as ``1.25x``; empty if it is not known."""
    return "" if ratio is None else f"{ratio:.2f}x"
