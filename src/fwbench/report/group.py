"""The records that the charts and the table of a section are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fwbench.report.drawing.chart import Point
from fwbench.report.model import Record
from fwbench.report.speedup import over_eager


@dataclass(frozen=True)
class Group:
    """The records of a section.

    Attributes:
        title: what they have in common.
        records: each with the name of its line; operations have a record for each size of a line.
        runs: the names of all runs, in their order.
    """

    title: str
    records: Sequence[tuple[str, Record]]
    runs: Sequence[str]

    @cached_property
    def gains(self) -> list[Point | None]:
        """How many times as fast as eager each record is; None where that is not known."""
        records = [record for _, record in self.records]
        return [over_eager(record, records) for record in records]
