"""Probes of cases, each in a process of its own: shares of the time by class, and peak memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fwbench.frameworks.profiler import CLASSES
from fwbench.records.facts import Memory, Profile, ProfiledOperator
from fwbench.report.drawing import bars, palette
from fwbench.report.drawing.chart import Chart
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run, frameworks
from fwbench.report.section import (
    Column,
    NamedRecord,
    Section,
    TableCell,
    by_work,
    columns,
    prose,
    share,
)

ORDER = 45
CONTENTS = "probes"

_PROSE = prose("probed")


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """Two sections for each work that was profiled, and one for each whose memory was measured."""
    records = [record for run in runs for record in run.records]
    profiled = (record for record in records if record.facts.profile is not None)
    measured = (record for record in records if record.facts.memory is not None)
    colours = palette.colours(frameworks(runs))
    return [
        *(section for lines in by_work(profiled, names) for section in _profiles(lines)),
        *(_memory(lines, colours) for lines in by_work(measured, names)),
    ]


def _title(cases: Sequence[NamedRecord]) -> str:
    facts = cases[0].facts
    return f"{facts.workload} {facts.direction} {facts.device} {facts.dtype} {facts.size_text}"


_CASE: Column[NamedRecord] = Column("case", lambda case: TableCell(case.name))


def _profile(case: NamedRecord) -> Profile:
    profile = case.facts.profile
    assert profile is not None  # noqa: S101 (only those that were profiled are shown)
    return profile


def _class_column(name: str) -> Column[NamedRecord]:
    return Column(name, lambda case: share((_profile(case).shares or {}).get(name)))


_MEASURES = columns("profiles")


_Operation = tuple[NamedRecord, ProfiledOperator]


def _operator_share(row: _Operation) -> TableCell:
    case, operator = row
    whole_s = _profile(case).operators_s
    return share(operator.time_s / whole_s if whole_s else None)


#: Operators of a case that are shown.
_SHOWN = 10

_OPERATORS = columns("operators", _operator_share)


def _profiles(cases: Sequence[NamedRecord]) -> Iterator[Section]:
    shares = {case.name: parts for case in cases if (parts := _profile(case).shares)}
    heading = f"where the time goes: {_title(cases)}"
    classes = [name for name in CLASSES if any(name in parts for parts in shares.values())]
    yield Section.from_items(
        heading,
        [_CASE, *map(_class_column, classes), *_MEASURES],
        cases,
        lambda case: case.keys,
        charts=[bars.draw_stacked(heading, shares, CLASSES, "{:.0%}".format)] if shares else [],
        notes=[_PROSE["profile"]],
    )
    shown = ((case, (_profile(case).operators or ())[:_SHOWN]) for case in cases)
    operators = [(case, operator) for case, of_case in shown for operator in of_case]
    if operators:
        yield Section.from_items(
            f"operators: {_title(cases)}", _OPERATORS, operators, lambda row: row[0].keys
        )


def _gaps(case: NamedRecord) -> TableCell:
    probes = (case.facts.forward_memory, case.facts.memory)
    gaps = dict.fromkeys(memory.gap for memory in probes if memory and memory.gap)
    return TableCell("; ".join(filter(None, gaps)))


_MEMORY_COLUMNS = (_CASE, *columns("memory", _gaps))


def _memory(cases: Sequence[NamedRecord], colours: Mapping[str, str]) -> Section:
    title = f"memory: {_title(cases)}"
    return Section.from_items(
        title,
        _MEMORY_COLUMNS,
        cases,
        lambda case: case.keys,
        charts=[*_memory_charts(title, cases, palette.looks_of(cases, colours))],
        notes=[_PROSE["memory"]],
    )


def _memory_charts(
    title: str, cases: Sequence[NamedRecord], looks: Mapping[str, Look]
) -> Iterator[Chart]:
    series = {
        "forward": _peaks((case.name, case.facts.forward_memory) for case in cases),
        cases[0].facts.direction: _peaks((case.name, case.facts.memory) for case in cases),
    }
    known = {name: peaks for name, peaks in series.items() if peaks}
    if known:
        title, show = f"{title}: peak above what was held before", "{:,.0f} MiB".format
        yield bars.draw(title, known, show, looks, downwards=True)


def _peaks(memories: Iterable[tuple[str, Memory | None]]) -> dict[str, float]:
    """Peaks in MiB, so that the marks below the bars are round."""
    return {
        name: memory.above_bytes / 2**20
        for name, memory in memories
        if memory and memory.above_bytes is not None
    }
