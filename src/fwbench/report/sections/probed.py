"""Probes of cases, each in a process of its own: shares of the time by class, and peak memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fwbench.frameworks.profiler import CLASSES
from fwbench.records.facts import CaseFacts, Memory, Profile, ProfiledOperator
from fwbench.records.measurement import Measurement
from fwbench.records.units import mebibytes
from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.model import Run
from fwbench.report.section import (
    Column,
    Section,
    TableCell,
    by_work,
    quantity,
    row_keys,
    seconds,
    share,
)

ORDER = 45

_PROFILE_NOTE = (
    "A few calls of each case ran under its framework's own profiler, in a process of their own; "
    "none of them was timed. Shares are of the operators' own times, which may overlap where "
    "operators run side by side. Compilers make one kernel of several operators: fused."
)

_MEMORY_NOTE = (
    "Each case made a few calls in a process of its own, and each forward pass of a model in "
    "another one. Peaks are above what the process held before the model was built or inputs were "
    "placed. Planned is what a framework's planner reserves for results, and saved what it keeps "
    "for the backward pass: neither compares between frameworks."
)


class _ProbedCase(NamedTuple):
    """A record with the name of its line."""

    name: str
    record: Measurement

    @property
    def profile(self) -> Profile:
        """The profile of a case that has one."""
        profile = self.record.facts.profile
        assert profile is not None  # noqa: S101 (only those that were profiled are shown)
        return profile

    @property
    def keys(self) -> dict[str, str]:
        """The facts that its rows can be filtered by."""
        return row_keys(self.record)


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """Two sections for each work that was profiled, and one for each whose memory was measured."""
    records = [record for run in runs for record in run.records]
    profiled = (record for record in records if record.facts.profile is not None)
    measured = (record for record in records if record.facts.memory is not None)
    return [
        *(s for named in by_work(profiled, names) for s in _profiles(_cases(named))),
        *(_memory(_cases(named)) for named in by_work(measured, names)),
    ]


def _cases(named: Mapping[str, Measurement]) -> list[_ProbedCase]:
    return [_ProbedCase(*item) for item in named.items()]


def _title(cases: Sequence[_ProbedCase]) -> str:
    facts = cases[0].record.facts
    return f"{facts.workload} {facts.direction} {facts.device} {facts.dtype} {facts.size_text}"


# Time


_CASE: Column[_ProbedCase] = Column("case", lambda case: TableCell(case.name))


def _class_column(name: str) -> Column[_ProbedCase]:
    return Column(name, lambda case: share((case.profile.shares or {}).get(name)))


_MEASURES: tuple[Column[_ProbedCase], ...] = (
    Column("operators", lambda case: seconds(case.profile.operators_s)),
    Column("call", lambda case: seconds(case.record.facts.call_s)),
    Column("call profiled", lambda case: seconds(case.profile.call_s)),
    Column("overhead", lambda case: quantity(case.record.facts.profile_overhead, "{:+.0%}".format)),
    Column("nothing profiled", lambda case: TableCell(case.profile.gap or "")),
)


_Operation = tuple[_ProbedCase, ProfiledOperator]


def _operator_share(row: _Operation) -> TableCell:
    case, operator = row
    whole_s = case.profile.operators_s
    return share(operator.time_s / whole_s if whole_s else None)


_OPERATORS: tuple[Column[_Operation], ...] = (
    Column("case", lambda row: TableCell(row[0].name), optional=False),
    Column("operator", lambda row: TableCell(row[1].name), optional=False),
    Column("class", lambda row: TableCell(row[1].operator_class), optional=False),
    Column("a call", lambda row: seconds(row[1].time_s), optional=False),
    Column("of operators", _operator_share, optional=False),
    Column("calls", lambda row: quantity(row[1].calls, "{:g}".format), optional=False),
)


def _profiles(cases: Sequence[_ProbedCase]) -> Iterator[Section]:
    """Classes of operators, and operators."""
    shares = {case.name: case.profile.shares for case in cases if case.profile.shares}
    heading = f"where the time goes: {_title(cases)}"
    classes = [name for name in CLASSES if any(name in parts for parts in shares.values())]
    yield Section.of(
        heading,
        [_CASE, *map(_class_column, classes), *_MEASURES],
        cases,
        lambda case: case.keys,
        charts=[bars.draw_stacked(heading, shares, CLASSES, "{:.0%}".format)] if shares else [],
        notes=[_PROFILE_NOTE],
    )
    operators = [(case, operator) for case in cases for operator in case.profile.operators or ()]
    if operators:
        yield Section.of(
            f"operators: {_title(cases)}", _OPERATORS, operators, lambda row: row[0].keys
        )


# Memory


#: Peaks and parts of the memory of calls, by column.
_OF_CALLS: Mapping[str, Callable[[Memory], int | None]] = {
    "peak": lambda memory: memory.above_bytes,
    "of calls": lambda memory: memory.calls_bytes,
    "of device": lambda memory: memory.device_peak_bytes,
    "planned": lambda memory: memory.planned_bytes,
    "saved": lambda memory: memory.saved_bytes,
}


def _forward(facts: CaseFacts) -> Memory | None:
    return facts.forward_memory


def _whole(facts: CaseFacts) -> Memory | None:
    return facts.memory


def _bytes_column(
    name: str, probe: Callable[[CaseFacts], Memory | None], part: Callable[[Memory], int | None]
) -> Column[_ProbedCase]:
    def cell(case: _ProbedCase) -> TableCell:
        memory = probe(case.record.facts)
        return quantity(part(memory) if memory else None, mebibytes)

    return Column(name, cell)


def _gaps(case: _ProbedCase) -> TableCell:
    probes = (_forward(case.record.facts), _whole(case.record.facts))
    gaps = dict.fromkeys(memory.gap for memory in probes if memory and memory.gap)
    return TableCell("; ".join(filter(None, gaps)))


_MEMORY_COLUMNS: tuple[Column[_ProbedCase], ...] = (
    _CASE,
    *(_bytes_column(f"forward: {name}", _forward, part) for name, part in _OF_CALLS.items()),
    *(_bytes_column(name, _whole, part) for name, part in _OF_CALLS.items()),
    _bytes_column("held before", _whole, lambda memory: memory.before_bytes),
    Column("not measured", _gaps),
)


def _memory(cases: Sequence[_ProbedCase]) -> Section:
    title = f"memory: {_title(cases)}"
    return Section.of(
        title,
        _MEMORY_COLUMNS,
        cases,
        lambda case: case.keys,
        charts=[*_memory_charts(title, cases)],
        notes=[_MEMORY_NOTE],
    )


def _memory_charts(title: str, cases: Sequence[_ProbedCase]) -> Iterator[Chart]:
    series = {
        "forward": _peaks(cases, _forward),
        cases[0].record.facts.direction: _peaks(cases, _whole),
    }
    known = {name: peaks for name, peaks in series.items() if peaks}
    if known:
        yield bars.draw(f"{title}: peak above what was held before", known, "{:,.0f} MiB".format)


def _peaks(
    cases: Sequence[_ProbedCase], probe: Callable[[CaseFacts], Memory | None]
) -> dict[str, float]:
    """Peaks in MiB, so that the marks below the bars are round."""
    return {
        case.name: memory.above_bytes / 2**20
        for case in cases
        if (memory := probe(case.record.facts)) and memory.above_bytes is not None
    }
