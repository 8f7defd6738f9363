"""Tables of a report, and the parts that they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fwbench.report.charts import Chart
from fwbench.report.model import Record
from fwbench.report.units import time

#: What the rows of a table can be chosen by.
KEYS = ("workload", "framework", "device", "execution")


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


def line(record: Record, runs: Sequence[str]) -> str:
    """What a record is called in tables and charts; of several runs it says which.

    Args:
        record: the record.
        runs: what the runs are called, in their order.
    """
    return record.series + of_run(record, runs)


def of_run(record: Record, runs: Sequence[str]) -> str:
    """Which of several runs; nothing if there is one."""
    return f" ({runs[record.run]})" if len(runs) > 1 else ""


def grouped(records: Iterable[Record], *names: str) -> dict[str, list[Record]]:
    """Records that share facts, by these facts."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(" ".join(str(record.facts.get(name)) for name in names), []).append(record)
    return found


def keys(record: Record) -> dict[str, str]:
    """What the row of a record can be chosen by."""
    return {name: str(record.facts[name]) for name in KEYS if name in record.facts}


def seconds(value: float | None) -> Cell:
    """A time; empty where there is none."""
    return Cell("" if value is None else time(value), value)


def percent(share: float) -> str:
    """With two digits behind the point."""
    return f"{share:.2%}"


def share(value: float | None) -> Cell:
    """A whole percentage; empty where there is none."""
    return Cell("" if value is None else f"{value:.0%}", value)


def billions(work: float | None, a_second: float) -> Cell:
    """Work a second, in thousands of millions."""
    if not work:
        return Cell("")
    return Cell(f"{work / a_second / 1e9:,.3g}", work / a_second)
