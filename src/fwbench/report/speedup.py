"""How much an execution gains over the eager one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fwbench.gate.statistics import interval
from fwbench.report.drawing.chart import Point
from fwbench.report.model import Record

_CONFIDENCE = 0.99


def over_eager(record: Record, group: Iterable[Record]) -> Point | None:
    """How many times as fast as the same framework's eager execution, with an interval.

    Args:
        record: of any execution.
        group: the records to look for the eager one in.

    Returns:
        The ratio over the size; None of an eager record, and where the eager one is missing.
    """
    if record.facts.execution == "eager":
        return None
    for eager in group:
        if eager.facts.execution == "eager" and _but_execution(eager) == _but_execution(record):
            low, high = interval(record.values_s, eager.values_s, _CONFIDENCE, 0)
            ratio = eager.median_s / record.median_s
            return Point(record.facts.size, ratio, low, high, record.point_label)
    return None


def _but_execution(record: Record) -> tuple[Any, ...]:
    """All that two records must have in common, except their execution."""
    return (
        record.run,
        record.facts.framework,
        record.facts.work,
        record.facts.steps_per_epoch,
        record.asked,
    )
