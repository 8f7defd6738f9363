"""Gain of an execution over the eager one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fwbench.gate.statistics import interval
from fwbench.records.measurement import Measurement
from fwbench.report.drawing.chart import Point

_CONFIDENCE = 0.99

_EAGER = "eager"


def gains(records: Sequence[Measurement]) -> list[Point | None]:
    """Speed-up of each record over the same framework's eager execution.

    Args:
        records: of any execution, the eager ones among them.

    Returns:
        The ratio with an interval, over the size; None of an eager record, and where the eager one
        is missing.
    """
    eager: dict[tuple[Any, ...], Measurement] = {}
    for record in records:
        if record.facts.execution == _EAGER:
            eager.setdefault(_but_execution(record), record)
    return [
        None
        if record.facts.execution == _EAGER
        else _gain(record, eager.get(_but_execution(record)))
        for record in records
    ]


def _gain(record: Measurement, eager: Measurement | None) -> Point | None:
    if eager is None:
        return None
    low, high = interval(record.values_s, eager.values_s, _CONFIDENCE, 0)
    ratio = eager.median_s / record.median_s
    return Point(record.facts.size, ratio, low, high, point_label(record))


def point_label(record: Measurement) -> str:
    """The shape of a record, if any, and the number of its values."""
    return ", ".join(filter(None, [record.facts.shape, record.values_text]))


def _but_execution(record: Measurement) -> tuple[Any, ...]:
    """All that two records must have in common, except their execution."""
    return (
        record.run,
        record.facts.framework,
        record.facts.work,
        record.facts.steps_per_epoch,
        frozenset(record.requested.items()),
    )
