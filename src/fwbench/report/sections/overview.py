"""All operations at a glance: who is how many times slower than the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fwbench.records.session_facts import NotMeasured
from fwbench.records.units import time
from fwbench.report.model import Record, Run, operations
from fwbench.report.ranking.condition import is_contended, marks
from fwbench.report.ranking.contests import split
from fwbench.report.section import (
    Row,
    Section,
    TableCell,
    Timing,
    grouped,
    line_name,
    shade,
    times,
)

ORDER = 15

_NOTE = (
    "Times against the fastest, each operation at the largest of the sizes that most were measured "
    "at. The darker a cell, the slower; a cell leads to the operation."
)

_CONTENDED = "A time without a ratio is contended: other processes used the processors meanwhile."

#: How the reason of a case that was skipped begins in the record of a session.
_SKIPPED = "skipped: "

#: Columns before those of the contestants.
_LEADING = ("operation", "family", "size")

#: Where a gap is: operation, contestant.
_Place = tuple[str, str]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each device, direction and dtype that has at least two contestants.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = operations(record for run in runs for record in run.records)
    maps = [
        _HeatMap(title, group, names, _gaps(runs, group))
        for title, group in grouped(records, "device", "direction", "dtype").items()
    ]
    return [heat_map.section for heat_map in maps if heat_map.has_rivals]


@dataclass(frozen=True)
class _HeatMap:
    """The records of a section, and what of them was skipped.

    Attributes:
        title: device, direction and dtype.
        records: of all operations, sizes and contestants.
        names: of the runs.
        gaps: why cases were skipped.
        contestants: framework and execution, by their columns.
    """

    title: str
    records: Sequence[Record]
    names: Sequence[str]
    gaps: Mapping[_Place, str]
    contestants: dict[str, dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        measured = {
            line_name(record, self.names): {
                "framework": record.facts.framework,
                "execution": record.facts.execution,
            }
            for record in self.records
        }
        object.__setattr__(self, "contestants", measured)

    @property
    def has_rivals(self) -> bool:
        """Whether there is anything to compare, apart from the same in several runs."""
        return len({record.series for record in self.records}) > 1

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """Columns of contestants, those of gaps alone last, with what they can be hidden by."""
        skipped = sorted({who for _, who in self.gaps} - {*self.contestants})
        of_gaps = {
            who: dict(zip(("framework", "execution"), who.rsplit(" ", 1), strict=False))
            for who in skipped
        }
        return {**self.contestants, **of_gaps}

    @property
    def section(self) -> Section:
        """The table."""
        works = [
            (f"{workload}{label}", part)
            for workload, group in grouped(self.records, "workload").items()
            for label, part in split(group, lambda record: record.facts).items()
        ]
        works.sort(key=lambda work: work[1][0].facts.family or "")
        contended = any(is_contended(record.facts) for record in self.records)
        return Section(
            f"overview {self.title}",
            (*_LEADING, *self.columns),
            [self._row(str(number), *work) for number, work in enumerate(works)],
            notes=[_NOTE, *([_CONTENDED] if contended else []), *_said(self.gaps)],
            column_keys=dict(enumerate(self.columns.values(), len(_LEADING))),
        ).without_empty_columns(_LEADING)

    def _row(self, contest: str, name: str, records: Sequence[Record]) -> Row:
        shown = {line_name(record, self.names): record for record in _at_one_size(records)}
        facts = next(iter(shown.values())).facts
        label = name.removeprefix(facts.workload)
        target = " ".join((facts.workload, facts.device, facts.direction, facts.dtype)) + label
        fastest_s = _fastest_s(shown.values())
        cells = [
            _cell(shown[column], contest, fastest_s, target)
            if column in shown
            else _gap(self.gaps.get((facts.workload, column), ""))
            for column in self.columns
        ]
        keys = {name: facts[name] for name in ("device", "direction", "dtype", "family")
                if facts.get(name)}  # fmt: skip
        return Row(
            [
                TableCell(name, target=target),
                TableCell(facts.family or ""),
                TableCell(facts.size_text, facts.size),
                *cells,
            ],
            keys,
        )


def _at_one_size(records: Sequence[Record]) -> list[Record]:
    """The records of the size that most contestants were measured at, the largest of these."""
    by_size: dict[tuple[int, str], list[Record]] = {}
    for record in records:
        by_size.setdefault((record.facts.size, record.facts.shape or ""), []).append(record)
    return by_size[max(by_size, key=lambda size: (len(by_size[size]), size))]


def _fastest_s(records: Iterable[Record]) -> dict[int, float]:
    """Seconds of the fastest case of each run, contended ones left out."""
    fastest: dict[int, float] = {}
    for record in records:
        if not is_contended(record.facts):
            known_s = fastest.get(record.run, record.median_s)
            fastest[record.run] = min(known_s, record.median_s)
    return fastest


def _cell(record: Record, contest: str, fastest_s: Mapping[int, float], target: str) -> TableCell:
    said = marks(record.facts)
    hint = time(record.median_s) + (f", {said}" if said else "")
    if is_contended(record.facts):
        return TableCell(time(record.median_s), None, hint=hint, target=target)
    ratio = record.median_s / fastest_s[record.run]
    timing = Timing(contest, record.series, record.run, record.median_s)
    return TableCell(times(ratio), ratio, hint, shade(ratio), target, timing)


def _gap(reason: str) -> TableCell:
    return TableCell("gap" if reason else "", hint=reason, shade="gap" if reason else "")


def _gaps(runs: Sequence[Run], records: Sequence[Record]) -> dict[_Place, str]:
    """Why cases of the same device, direction and dtype were skipped, by their place.

    Args:
        runs: those that are shown.
        records: of one device, direction and dtype.
    """
    facts = records[0].facts
    workloads = {record.facts.workload for record in records}
    gaps = {}
    for missing in (missing for run in runs for missing in run.session.missing or ()):
        (workload, contestant), about = _of(missing)
        alike = about == (facts.device, facts.direction, facts.dtype) and workload in workloads
        if alike and missing.why.startswith(_SKIPPED):
            gaps[workload, contestant] = missing.why.removeprefix(_SKIPPED)
    return gaps


def _of(missing: NotMeasured) -> tuple[_Place, tuple[str, str, str]]:
    """The place of a case in the table; and its device, direction and dtype, by its id."""
    _, _, case = missing.nodeid.partition("[")
    workload, _, rest = case.partition("-")
    parts = rest.removeprefix(f"{missing.framework}-").split("-")
    device, execution, direction, dtype = (*parts, "", "", "", "")[:4]
    return (workload, f"{missing.framework} {execution}"), (device, direction, dtype)


def _said(gaps: Mapping[_Place, str]) -> list[str]:
    """A line for each reason: who, and which operations."""
    by_reason: dict[str, list[_Place]] = {}
    for place, reason in gaps.items():
        by_reason.setdefault(reason, []).append(place)
    lines = []
    for reason, places in by_reason.items():
        workloads = ", ".join(dict.fromkeys(workload for workload, _ in places))
        contestants = ", ".join(dict.fromkeys(who for _, who in places))
        lines.append(f"Gap: {reason} ({contestants}: {workloads}).")
    return lines
