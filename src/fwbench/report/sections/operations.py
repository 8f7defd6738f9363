"""Operations, steps and loaders."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.units import time
from fwbench.report import charts
from fwbench.report.drawing.chart import Point
from fwbench.report.group import Group
from fwbench.report.model import Record, Run, operations
from fwbench.report.section import (
    Row,
    Section,
    TableCell,
    billions,
    grouped,
    line_name,
    row_keys,
    seconds,
    share,
)

ORDER = 20

_COLUMNS = (
    *("case", "size", "median", "middle half", "dispatch", "first call", "against eager"),
    *("GFLOP/s", "GB/s", "of attainable", "measured"),
)


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each operation, device, direction and dtype.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = operations(record for run in runs for record in run.records)
    groups = grouped(records, "workload", "device", "direction", "dtype")
    return [_section(title, group, names) for title, group in groups.items()]


def _section(title: str, records: Sequence[Record], runs: Sequence[str]) -> Section:
    group = Group(title, [(line_name(record, runs), record) for record in records], runs)
    rows = [_row(*named, gain) for named, gain in zip(group.records, group.gains, strict=True)]
    return Section(title, _COLUMNS, rows, charts.draw_all("operations", group))


def _row(name: str, record: Record, gain: Point | None) -> Row:
    low, high = record.quartiles_s
    return Row(
        [
            TableCell(name),
            TableCell(f"{record.facts.size:,}", record.facts.size),
            seconds(record.median_s),
            TableCell(f"{time(low)} to {time(high)}", low),
            seconds(record.facts.dispatch_s),
            seconds(record.facts.first_call_s),
            _gain(gain),
            billions(record.facts.flops, record.median_s),
            billions(record.facts.bytes, record.median_s),
            share(record.facts.attainable_share),
            TableCell(record.measured, record.number),
        ],
        row_keys(record),
    )


def _gain(gain: Point | None) -> TableCell:
    if gain is None:
        return TableCell("")
    ends = f" ({gain.low:.2f} to {gain.high:.2f})" if gain.low < gain.high else ""
    return TableCell(f"{gain.y:.2f}x{ends}", gain.y)
