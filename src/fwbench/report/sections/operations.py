"""Operations, steps and loaders."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.units import time
from fwbench.report import charts
from fwbench.report.drawing.chart import Point
from fwbench.report.group import Group
from fwbench.report.model import Record, Run, operations
from fwbench.report.ranking.condition import condition_of, marks
from fwbench.report.ranking.contests import split
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
    *("case", "size", "median", "condition", "middle half", "dispatch", "first call in process"),
    *("against eager", "GFLOP/s", "GB/s", "of attainable", "measured"),
)


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each operation, device, direction and dtype; views are apart from copies.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = operations(record for run in runs for record in run.records)
    groups = grouped(records, "workload", "device", "direction", "dtype")
    return [
        _section(f"{title}{label}", part, names)
        for title, group in groups.items()
        for label, part in split(group, lambda record: record.facts).items()
    ]


def _section(title: str, records: Sequence[Record], runs: Sequence[str]) -> Section:
    group = Group(title, [(line_name(record, runs), record) for record in records], runs)
    rows = [_row(*named, gain) for named, gain in zip(group.records, group.gains, strict=True)]
    return Section(title, _COLUMNS, rows, charts.draw_all("operations", group))


def _row(name: str, record: Record, gain: Point | None) -> Row:
    low, high = record.quartiles_s
    return Row(
        [
            TableCell(name),
            TableCell(record.facts.size_text, record.facts.size),
            seconds(record.median_s),
            TableCell(marks(record.facts) or condition_of(record.facts)),
            TableCell(f"{time(low)} to {time(high)}", low),
            seconds(record.facts.dispatch_s),
            _first_call(record),
            _gain(gain),
            billions(record.facts.flops, record.median_s),
            billions(record.facts.bytes, record.median_s),
            share(record.facts.attainable_share),
            TableCell(record.measured, record.number),
        ],
        row_keys(record),
    )


def _first_call(record: Record) -> TableCell:
    """After whatever its process did before; and in a fresh process, where that is known."""
    in_process_s, fresh_s = record.facts.first_call_in_process_s, record.facts.first_call_s
    if in_process_s is None or fresh_s is None:
        return seconds(in_process_s)
    return TableCell(f"{time(in_process_s)}, fresh {time(fresh_s)}", in_process_s)


def _gain(gain: Point | None) -> TableCell:
    if gain is None:
        return TableCell("")
    ends = f" ({gain.low:.2f} to {gain.high:.2f})" if gain.low < gain.high else ""
    return TableCell(f"{gain.y:.2f}x{ends}", gain.y)
