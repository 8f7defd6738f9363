"""Operations, steps and loaders."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.measure.condition import CLEAN
from fwbench.records.measurement import Measurement
from fwbench.records.units import amount, time
from fwbench.report import charts
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.fastest import against_fastest
from fwbench.report.group import Group
from fwbench.report.model import Run, frameworks, operations
from fwbench.report.ranking.condition import condition_of, marks
from fwbench.report.ranking.contests import split
from fwbench.report.scaling import unshared
from fwbench.report.section import (
    AGAINST_FASTEST,
    Row,
    Section,
    TableCell,
    billions,
    grouped,
    joules,
    line_names,
    row_keys,
    seconds,
    share,
)

ORDER = 20

_COLUMNS = (
    *(
        "case",
        "size",
        "median",
        AGAINST_FASTEST,
        "condition",
        "middle half",
        "dispatch",
        "on the device",
    ),
    *(
        "first call in process",
        "against eager",
        "GFLOP/s",
        "GB/s",
        "of attainable",
        "energy",
        "GPU memory",
        "measured",
    ),
)

#: Sections that have charts: those whose contestants differ most.
_DRAWN = 50

_LEFT_OUT = (
    "Not drawn: charts are of the {} of {} operations whose times differ most, and -k NAME draws "
    "others."
)


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each operation, device, direction and dtype; views are apart from copies.

    What replicas shared has sections of its own (:mod:`~fwbench.report.sections.replicas`).

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = unshared(operations(record for run in runs for record in run.records))
    colours = palette.colours(frameworks(runs))
    groups = [
        Group(f"{title}{label}", line_names(part, names), names, colours)
        for title, group in grouped(records, "workload", "device", "direction", "dtype").items()
        for label, part in split(group, lambda record: record.facts).items()
    ]
    drawn = sorted(groups, key=_difference, reverse=True)[:_DRAWN]
    left_out = [] if len(drawn) == len(groups) else [_LEFT_OUT.format(_DRAWN, len(groups))]
    titles = {group.title for group in drawn}
    return [
        _section(group, charts.draw_all("operations", group), [])
        if group.title in titles
        else _section(group, [], left_out)
        for group in groups
    ]


def _difference(group: Group) -> float:
    """The largest ratio of two times at the same size."""
    by_size: dict[str, list[float]] = {}
    for _, record in group.records:
        by_size.setdefault(record.facts.size_text, []).append(record.median_s)
    return max(max(times_s) / min(times_s) for times_s in by_size.values())


def _section(group: Group, drawn: Sequence[Chart], notes: Sequence[str]) -> Section:
    known = any(
        marks(record.facts) or condition_of(record.facts) != CLEAN for _, record in group.records
    )
    ratios = against_fastest(group.records, group.runs)
    rows = [
        (record, _row(name, record, gain, ratio, condition_known=known))
        for (name, record), gain, ratio in zip(group.records, group.gains, ratios, strict=True)
    ]
    rows.sort(key=lambda pair: (pair[0].facts.size, pair[0].facts.size_text, pair[0].median_s))
    legend = group.looks if drawn else {}
    return Section(
        group.title, _COLUMNS, [row for _, row in rows], drawn, notes, legend=legend
    ).without_empty_columns()


def _row(
    name: str, record: Measurement, gain: Point | None, ratio: TableCell, *, condition_known: bool
) -> Row:
    low, high = record.quartiles_s
    condition = marks(record.facts) or condition_of(record.facts)
    return Row(
        [
            TableCell(name),
            TableCell(record.facts.size_text, record.facts.size),
            seconds(record.median_s),
            ratio,
            TableCell(condition if condition_known else ""),
            TableCell(f"{time(low)} to {time(high)}", low),
            seconds(record.facts.dispatch_s),
            seconds(record.facts.device_s),
            _first_call(record),
            _gain(gain),
            billions(record.facts.flops, record.median_s),
            billions(record.facts.bytes, record.median_s),
            share(record.facts.attainable_share),
            joules(record.facts.energy_j),
            _device_memory(record),
            TableCell(record.values_text, record.number),
        ],
        row_keys(record),
    )


def _device_memory(record: Measurement) -> TableCell:
    """The memory of a GPU that its operands, its result and what computes it take."""
    facts = record.facts
    before_bytes, peak_bytes = facts.device_memory_before_bytes, facts.peak_device_memory_bytes
    if before_bytes is None or peak_bytes is None:
        return TableCell("")
    above_bytes = max(0, peak_bytes - before_bytes)
    return TableCell(amount(above_bytes), above_bytes)


def _first_call(record: Measurement) -> TableCell:
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
