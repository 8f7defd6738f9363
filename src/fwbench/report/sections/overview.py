"""All operations at a glance: the ratio of each contestant to the fastest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, group_by, requested_toggles
from fwbench.records.session_facts import SKIPPED, NotMeasured
from fwbench.records.units import time
from fwbench.report import ranking
from fwbench.report.condition import is_contended, marks
from fwbench.report.model import Run, operations
from fwbench.report.ranking import split
from fwbench.report.section import (
    Column,
    NamedRecord,
    Section,
    TableCell,
    against_fastest,
    columns,
    grouped,
    in_order,
    line_names,
    prose,
    run_suffix,
)

ORDER = 15
CONTENTS = "overview"

_PROSE = prose("overview")

_COMPLETION = f"On a GPU these are {ranking.COMPLETION}s: launch, kernel and wait."

#: Facts by which a column can be hidden: framework and execution.
Keys = Mapping[str, str]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each device, direction and dtype that has at least two contestants."""
    records = operations(record for run in runs for record in run.records)
    maps = [
        _HeatMap(title, group, names, _gaps(runs, names, group))
        for title, group in grouped(records, "device", "direction", "dtype").items()
    ]
    return [heat_map.section for heat_map in maps if heat_map.has_rivals]


@dataclass(frozen=True)
class _Gap:
    """A case that was skipped."""

    workload: str
    column: str
    keys: Keys
    about: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class _HeatMap:
    """The records of a section, and its skipped cases."""

    title: str
    records: Sequence[Measurement]
    names: Sequence[str]
    gaps: Sequence[_Gap]

    @property
    def has_rivals(self) -> bool:
        """True if there is anything to compare, apart from the same in several runs."""
        return len({record.contestant for record in self.records}) > 1

    @cached_property
    def works(self) -> dict[str, list[NamedRecord]]:
        """The records of each operation with the names of their columns."""
        return {
            f"{workload}{label}": line_names(part, self.names)
            for workload, group in grouped(self.records, "workload").items()
            for label, part in split(group, lambda record: record.facts).items()
        }

    @cached_property
    def columns(self) -> dict[str, Keys]:
        """Contestants, those of gaps alone last, with what their columns can be hidden by."""
        lines = [line for named in self.works.values() for line in named]
        measured = {
            line.name: _keys(line.facts.framework, line.facts.execution)
            for line in sorted(lines, key=lambda line: (line.record.run, *in_order(line.facts)))
        }
        skipped = {gap.column: gap.keys for gap in self.gaps}
        return {**measured, **{name: skipped[name] for name in sorted({*skipped} - {*measured})}}

    @property
    def section(self) -> Section:
        works = sorted(self.works.items(), key=lambda work: work[1][0][1].facts.family or "")
        contended = any(is_contended(record.facts) for record in self.records)
        several = ranking.has_several(self.records[0].facts.device)
        return Section.from_items(
            f"overview {self.title}",
            [*_LEADING, *(_contestant(name, keys) for name, keys in self.columns.items())],
            [self._row(f"{number}.", *work) for number, work in enumerate(works)],
            lambda row: row.keys,
            notes=[_PROSE["heat"], *[_COMPLETION] * several, *[_PROSE["contended"]] * contended],
            page_notes=[_PROSE["colours"]],
            gaps=_reasons(self.gaps),
        )

    def _row(self, prefix: str, name: str, named: Sequence[NamedRecord]) -> "_Work":
        measured = _at_one_size(named)
        facts = measured[0][1].facts
        target = " ".join((facts.workload, facts.device, facts.direction, facts.dtype))
        target += name.removeprefix(facts.workload)
        ratios = against_fastest(measured, self.names, prefix)
        is_decided = any(ratio.value for ratio in ratios)
        cells = {
            gap.column: TableCell("gap", hint=gap.reason, shade="gap")
            for gap in self.gaps
            if gap.workload == facts.workload
        }
        cells |= {
            column: _cell(record, ratio, target, is_decided=is_decided)
            for (column, record), ratio in zip(measured, ratios, strict=True)
        }
        return _Work(name, target, facts, cells)


class _Work(NamedTuple):
    """An operation at one size."""

    name: str
    target: str
    facts: CaseFacts
    cells: Mapping[str, TableCell]

    @property
    def keys(self) -> Keys:
        """The facts that it can be filtered by."""
        names = ("device", "direction", "dtype", "family")
        return {name: self.facts[name] for name in names if self.facts.get(name)}


def _operation(row: _Work) -> TableCell:
    return TableCell(row.name, target=row.target)


_LEADING = columns("overview", _operation)


def _contestant(name: str, keys: Keys) -> Column[_Work]:
    def cell(row: _Work) -> TableCell:
        return row.cells.get(name, TableCell(""))

    return Column(name, cell, optional=False, keys=keys)


def _keys(framework: str, execution: str) -> Keys:
    return {"framework": framework, "execution": execution}


def _at_one_size(named: Sequence[NamedRecord]) -> list[NamedRecord]:
    """The records of the size that most contestants were measured at, the largest of these."""
    by_size = group_by(named, lambda line: (line.facts.size, line.facts.shape or ""))
    return by_size[max(by_size, key=lambda size: (len(by_size[size]), size))]


def _cell(record: Measurement, ratio: TableCell, target: str, *, is_decided: bool) -> TableCell:
    """The ratio with its shade; a time where the row is not decided, and so has no ratio."""
    hint = ", ".join(filter(None, [time(record.median_s), marks(record.facts)]))
    if ratio.value is not None:
        return replace(ratio, hint=hint, target=target)
    contended, text = is_contended(record.facts), time(record.median_s)
    if is_decided:
        text = "contended" if contended else "-"
    elif contended:
        text = f"≤ {text}"
    return replace(ratio, text=text, hint=hint, target=target)


def _gaps(runs: Sequence[Run], names: Sequence[str], records: Sequence[Measurement]) -> list[_Gap]:
    """The cases of the same device, direction and dtype that were skipped."""
    facts = records[0].facts
    about = (facts.device, facts.direction, facts.dtype)
    workloads = {record.facts.workload for record in records}
    skipped = (
        _skipped(missing, run_suffix(number, names))
        for number, run in enumerate(runs)
        for missing in run.session.missing or ()
        if missing.why.startswith(SKIPPED)
    )
    return [
        gap
        for gap in skipped
        if gap is not None and gap.about == about and gap.workload in workloads
    ]


def _skipped(missing: NotMeasured, suffix: str) -> _Gap | None:
    """The gap of a case that was not measured; None for other benchmarks."""
    params = missing.params
    if not params:
        return None
    workload, execution, *about = (
        str(params.get(name, ""))
        for name in ("workload", "execution", "device", "direction", "dtype")
    )
    toggles = (f"{name}={value}" for name, value in requested_toggles(params).items())
    return _Gap(
        workload,
        " ".join([missing.framework, execution, *toggles]) + suffix,
        _keys(missing.framework, execution),
        tuple(about),
        missing.why.removeprefix(SKIPPED),
    )


def _reasons(gaps: Sequence[_Gap]) -> list[str]:
    """A line for each reason: who, and which operations."""
    lines = []
    for reason, alike in group_by(gaps, lambda gap: gap.reason).items():
        workloads = ", ".join(dict.fromkeys(gap.workload for gap in alike))
        contestants = ", ".join(dict.fromkeys(gap.column for gap in alike))
        lines.append(f"{reason} ({contestants}: {workloads}).")
    return lines
