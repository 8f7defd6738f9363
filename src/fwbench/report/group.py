"""The records that the charts and the table of a section are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fwbench.records.measurement import Measurement
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import Point
from fwbench.report.drawing.palette import Look
from fwbench.report.speedup import gains


@dataclass(frozen=True)
class Group:
    """The records of a section.

    Attributes:
        title: what they have in common.
        records: each with the name of its line; operations have a record for each size of a line.
        runs: the names of all runs, in their order.
        colours: of the report's frameworks, by their names.
    """

    title: str
    records: Sequence[tuple[str, Measurement]]
    runs: Sequence[str]
    colours: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look of each line, by its name."""
        contestants = {
            name: (record.facts.framework, record.facts.execution) for name, record in self.records
        }
        colours = self.colours or palette.colours(name for name, _ in contestants.values())
        return palette.looks(contestants, colours)

    @property
    def has_one_size(self) -> bool:
        """True if there is nothing to draw over sizes."""
        return len({record.facts.size_text for _, record in self.records}) == 1

    @cached_property
    def gains(self) -> list[Point | None]:
        """Speed-up of each record over eager; None where that is not known."""
        return gains([record for _, record in self.records])
