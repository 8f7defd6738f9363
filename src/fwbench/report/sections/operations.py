"""Operations, steps and loaders."""

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

from fwbench.frameworks.gpus import DEVICE_CLOCKS
from fwbench.measure.condition import CLEAN
from fwbench.measure.device_time import SLOPE
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.units import amount, time
from fwbench.report import charts
from fwbench.report.charts import Group
from fwbench.report.condition import condition_of, is_contended, marks
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.model import Run, frameworks, operations
from fwbench.report.ranking import split
from fwbench.report.scaling import unshared
from fwbench.report.section import (
    AGAINST_FASTEST,
    Section,
    TableCell,
    against_fastest,
    columns,
    grouped,
    line_names,
    prose,
    quantity,
    row_keys,
    seconds,
    turns_note,
)

ORDER = 20

_PROSE = prose("operations")

#: Sections that have charts: those whose contestants differ most.
_DRAWN = 50


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each operation, device, direction and dtype; views are apart from copies.

    What replicas shared has sections of its own (:mod:`~fwbench.report.sections.replicas`).
    """
    records = unshared(operations(record for run in runs for record in run.records))
    colours = palette.colours(frameworks(runs))
    groups = [
        Group(f"{title}{label}", line_names(part, names), names, colours)
        for title, group in grouped(records, "workload", "device", "direction", "dtype").items()
        for label, part in split(group, lambda record: record.facts).items()
    ]
    groups.sort(key=lambda group: group.records[0][1].facts.family or "")
    drawn = sorted(groups, key=_difference, reverse=True)[:_DRAWN]
    left_out = [] if len(drawn) == len(groups) else [_PROSE["left_out"].format(_DRAWN, len(groups))]
    titles = {group.title for group in drawn}
    return [
        _section(group, charts.draw_all("operations", group), [])
        if group.title in titles
        else _section(group, [], left_out)
        for group in groups
    ]


def _difference(group: Group) -> float:
    """The largest ratio of two times at the same size."""
    records = (record for _, record in group.records)
    by_size = group_by(records, lambda record: record.facts.size_text).values()
    times_s = [[record.median_s for record in records] for records in by_size]
    return max(max(contestants) / min(contestants) for contestants in times_s)


def _section(group: Group, drawn: Sequence[Chart], notes: Sequence[str]) -> Section:
    has_doubts = any(
        marks(record.facts) or condition_of(record.facts) != CLEAN for _, record in group.records
    )
    is_alone = len({name for name, _ in group.records}) == 1
    ratios = against_fastest(group.records, group.runs)
    bounds = [cell for cell in ratios if cell.timing and math.isnan(cell.timing.time_s)]
    useless = {
        _CONDITION: not has_doubts,
        AGAINST_FASTEST: is_alone or len(bounds) > len(ratios) - 2,
    }
    left_out = {name for name, is_useless in useless.items() if is_useless}
    has_ratios = any(cell.value for cell in ratios) or any(group.gains)
    is_drawn = any(not chart.is_lone for chart in drawn)
    pale = is_drawn and any(is_contended(record.facts) for _, record in group.records)
    rows = [
        _Operation(name, record, gain, ratio)
        for (name, record), gain, ratio in zip(group.records, group.gains, ratios, strict=True)
    ]
    rows.sort(key=lambda row: (row.facts.size, row.facts.size_text, row.record.median_s))
    return Section.from_items(
        group.title,
        [column for column in _COLUMNS if column.name not in left_out],
        rows,
        lambda row: row_keys(row.record),
        charts=drawn,
        notes=[*(turns_note(row.record for row in rows) if has_ratios else ()), *_untimed(rows)],
        page_notes=[*notes, *[_PROSE["pale"]] * pale],
        legend=group.looks if drawn else {},
    )


class _Operation(NamedTuple):
    """A record with its gain over eager, and its ratio to the fastest."""

    name: str
    record: Measurement
    gain: Point | None
    ratio: TableCell

    @property
    def facts(self) -> CaseFacts:
        return self.record.facts

    @property
    def on_device(self) -> SimpleNamespace:
        """Seconds of a call on its device, by the clocks that told them; None by the others."""
        facts = self.facts
        clocks = dict.fromkeys((*DEVICE_CLOCKS, SLOPE))
        told = {facts.device_clock or SLOPE: facts.device_s, **facts.on_device_s}
        return SimpleNamespace(**clocks | told)


def _untimed(rows: Sequence[_Operation]) -> list[str]:
    """Reasons that a GPU's own clock did not time calls, with the frameworks whose they were."""
    untimed = [
        (note, reason, facts.framework)
        for facts in (row.facts for row in rows)
        for note, reason in (("slope", facts.slope_reason), ("kernels", facts.kernels_reason))
        if reason
    ]
    return [
        _PROSE[note].format(", ".join(sorted({framework for *_, framework in same})), reason)
        for (note, reason), same in group_by(untimed, lambda each: each[:2]).items()
    ]


def _spread(row: _Operation) -> TableCell:
    low, high = row.record.quartiles_s
    return TableCell(f"{time(low)} to {time(high)}", low)


def _device_memory(row: _Operation) -> TableCell:
    """The memory of a GPU that its operands, its result and its computation take."""
    facts = row.facts
    before_bytes, peak_bytes = facts.device_memory_before_bytes, facts.peak_device_memory_bytes
    if before_bytes is None or peak_bytes is None:
        return TableCell("")
    return quantity(max(0, peak_bytes - before_bytes), amount)


def _first_call(row: _Operation) -> TableCell:
    """The first call in its process; and in a fresh process, where that is known."""
    in_process_s, fresh_s = row.facts.first_call_in_process_s, row.facts.first_call_s
    if in_process_s is None or fresh_s is None:
        return seconds(in_process_s)
    return TableCell(f"{time(in_process_s)}, fresh {time(fresh_s)}", in_process_s)


def _gain(row: _Operation) -> TableCell:
    gain = row.gain
    if gain is None:
        return TableCell("")
    ends = f" ({gain.low:.2f} to {gain.high:.2f})" if gain.low < gain.high else ""
    return TableCell(f"{gain.y:.2f}x{ends}", gain.y)


def _unshaded(row: _Operation) -> TableCell:
    return replace(row.ratio, shade="")


_CONDITION = "condition"


def _condition(row: _Operation) -> TableCell:
    return TableCell(marks(row.facts) or condition_of(row.facts))


_COLUMNS = columns("operations", _unshaded, _condition, _spread, _first_call, _gain, _device_memory)
