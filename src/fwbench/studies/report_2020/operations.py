"""Benchmark A: TensorFlow's time over MXNet's, then and today. Above 1, MXNet takes less."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fwbench.report import charts
from fwbench.report.model import Record
from fwbench.report.sections.table import Cell, Part, Row
from fwbench.studies.report_2020 import published


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


def ratios_of(device: str, records: Iterable[Record]) -> list[Ratios]:
    """Of every operation and size that was published.

    Args:
        device: ``cpu`` or ``gpu``.
        records: measured on it.
    """
    ours: dict[tuple[str, int, str], Record] = {
        (one.workload, one.size, one.framework): one
        for one in records
        if one.execution == "eager"
        and one.dtype == "float32"
        and one.direction == "forward"
        and not one.facts["params"]
        and one.dispatch_s
    }
    then = {
        (row["operation"], int(row["size"]), row["framework"]): float(row["median_s"])
        for row in published.rows("operations", device)
    }
    found = []
    for operation, size in dict.fromkeys((name, size) for name, size, _ in then):
        tensorflow, mxnet = (
            ours.get((operation, size, framework)) for framework in ("tensorflow", "mxnet")
        )
        dispatch = completion = None
        if tensorflow is not None and mxnet is not None:
            dispatch = tensorflow.dispatch_s / mxnet.dispatch_s
            completion = tensorflow.completion_s / mxnet.completion_s
        then_was = then[operation, size, "tensorflow"] / then[operation, size, "mxnet"]
        found.append(Ratios(operation, size, then_was, dispatch, completion))
    return found


def parts(device: str, ratios: Sequence[Ratios]) -> list[Part]:
    """All operations in one table, and all that was measured size by size in another."""
    by = {name: [*group] for name, group in itertools.groupby(ratios, lambda one: one.operation)}
    shown: dict[str, Callable[[Ratios], float | None]] = {
        "2020, published": lambda one: one.published,
        "today, until calls returned": lambda one: one.dispatch,
        "today, until the work was done": lambda one: one.completion,
    }
    # Of the sizes that were measured, so that all columns are about the same ones.
    about = {
        name: [one for one in group if one.completion is not None] or group
        for name, group in by.items()
    }
    series = {
        what: {name: found for name, group in about.items() if (found := mean(map(of, group)))}
        for what, of in shown.items()
    }
    rows = [
        Row(
            [
                Cell(name),
                Cell(f"{sum(one.completion is not None for one in group)} of {len(group)}"),
                *(_mean_and_range([*map(of, about[name])]) for of in shown.values()),
            ],
            {"workload": name, "device": device},
        )
        for name, group in by.items()
    ]
    each = [
        Row(
            [
                Cell(f"{one.operation} {one.size:,}"),
                *(Cell(times(of(one)), of(one)) for of in shown.values()),
            ],
            {"workload": one.operation, "device": device},
        )
        for one in ratios
        if one.completion is not None
    ]
    title = f"2020, operations on the {device.upper()}: TensorFlow's time over MXNet's"
    note = (
        "Above 1, MXNet takes less. Eager executions, float32, the dimensions of the report. The "
        "published figures are CPU time until the calls returned."
    )
    chart = charts.bars(title, {what: found for what, found in series.items() if found}, times)
    columns = ("operation", "sizes measured", *(f"{what} (range)" for what in shown))
    return [
        Part(title, columns, rows, [chart], [note]),
        *([Part(f"{title}, size by size", ("operation", *shown), each)] if each else []),
    ]


def mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of what is known."""
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def _mean_and_range(values: Sequence[float | None]) -> Cell:
    middle, known = mean(values), [value for value in values if value is not None]
    if middle is None:
        return Cell("not measured")
    return Cell(f"{times(middle)} ({times(min(known))} to {times(max(known))})", middle)


def times(ratio: float | None) -> str:
    """A ratio, if it is known."""
    return "" if ratio is None else f"{ratio:.2f}x"
