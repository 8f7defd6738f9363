"""What a report is made of: sections, each a table with charts above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fwbench.records.units import time
from fwbench.report.drawing.chart import Chart
from fwbench.report.model import Record

#: The facts by which rows of a table can be filtered.
KEYS = ("workload", "framework", "device", "execution")


@dataclass(frozen=True)
class TableCell:
    """A cell of a table.

    Attributes:
        text: what is shown.
        value: what it is sorted by; None for the text.
        hint: what a pointer over it shows, in addition.
        shade: the class of its background: ``step0`` to ``step5``, the fastest first, or ``gap``.
        target: the title of the section that it leads to.
    """

    text: str
    value: float | None = None
    hint: str = ""
    shade: str = ""
    target: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, and the facts that it can be filtered by."""

    cells: Sequence[TableCell]
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A table, and the charts above it.

    Attributes:
        title: heading.
        columns: heads of the table's columns.
        rows: of the table; without any there is no table.
        charts: above the table, in this order.
        notes: paragraphs below the heading.
        caption: of the table; empty for the title.
        id: for links; empty until :func:`fwbench.report.sections.linkable` gives one.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    caption: str = ""
    id: str = ""


def line_name(record: Record, runs: Sequence[str]) -> str:
    """The name of a record in tables and charts; with its run, where there are several.

    Args:
        record: the record.
        runs: the names of the runs, in their order.
    """
    return record.series + run_suffix(record, runs)


def run_suffix(record: Record, runs: Sequence[str]) -> str:
    """The name of a record's run in brackets; empty where there is only one run.

    Args:
        record: the record.
        runs: the names of the runs, in their order.
    """
    return f" ({runs[record.run]})" if len(runs) > 1 else ""


def grouped(records: Iterable[Record], *names: str) -> dict[str, list[Record]]:
    """Records by the facts that they share.

    Args:
        records: in the order to show them.
        names: of the facts.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        key = " ".join(str(record.facts.get(name)) for name in names)
        groups.setdefault(key, []).append(record)
    return groups


def row_keys(record: Record) -> dict[str, str]:
    """The facts that the row of a record can be filtered by."""
    return {name: str(record.facts[name]) for name in KEYS if name in record.facts}


def seconds(value: float | None) -> TableCell:
    """A cell with a time; empty where there is none."""
    return TableCell("" if value is None else time(value), value)


def share(value: float | None) -> TableCell:
    """A cell with a whole percentage; empty where there is none."""
    return TableCell("" if value is None else f"{value:.0%}", value)


def billions(work: float | None, call_s: float) -> TableCell:
    """A cell with work a second in thousands of millions; empty where there is no work.

    Args:
        work: of one call: floating-point operations, or bytes.
        call_s: seconds of one call.
    """
    if not work:
        return TableCell("")
    return TableCell(f"{work / call_s / 1e9:,.3g}", work / call_s)


def percent(value: float) -> str:
    """A share as a percentage with two digits behind the point."""
    return f"{value:.2%}"


def times(ratio: float) -> str:
    """A ratio of times, such as ``1.25x``."""
    return f"{ratio:.3g}x"
