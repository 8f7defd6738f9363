"""Families of operations at a glance: who is how many times slower than the fastest."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from fwbench.records.session_facts import NotMeasured
from fwbench.records.units import time
from fwbench.report.model import Record, Run, operations
from fwbench.report.ranking.condition import is_contended, marks
from fwbench.report.ranking.contests import split
from fwbench.report.section import Row, Section, TableCell, grouped, line_name, times

ORDER = 15

#: From these ratios on a cell is one step paler; the fastest and what is as fast are not.
_STEPS = (1.05, 1.5, 2.0, 4.0, 10.0)

_NOTE = (
    "Times against the fastest, each operation at the largest of its sizes that was measured. The "
    "darker, the faster."
)

_CONTENDED = "A time without a ratio is contended: other processes used the processors meanwhile."

#: How the reason of a case that was skipped begins in the record of a session.
_SKIPPED = "skipped: "

#: Where a gap is: operation, contestant.
_Place = tuple[str, str]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each family, device, direction and dtype that has at least two contestants.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = [record for record in operations(_all(runs)) if record.facts.family]
    found = []
    for title, group in grouped(records, "family", "device", "direction", "dtype").items():
        contestants = list(dict.fromkeys(line_name(record, names) for record in group))
        if len(contestants) > 1:
            found.append(_section(title, group, contestants, names, _gaps(runs, group[0])))
    return found


def _all(runs: Sequence[Run]) -> list[Record]:
    return [record for run in runs for record in run.records]


def _section(
    title: str,
    records: Sequence[Record],
    contestants: Sequence[str],
    names: Sequence[str],
    gaps: Mapping[_Place, str],
) -> Section:
    columns = [*contestants, *sorted({who for _, who in gaps} - {*contestants})]
    rows = [
        _row(f"{workload}{label}", part, columns, names, gaps)
        for workload, of_workload in grouped(records, "workload").items()
        for label, part in split(of_workload, lambda record: record.facts).items()
    ]
    contended = any(is_contended(record.facts) for record in records)
    notes = [_NOTE, *([_CONTENDED] if contended else []), *_said(gaps)]
    return Section(f"family {title}", ("operation", "size", *columns), rows, notes=notes)


def _row(
    name: str,
    records: Sequence[Record],
    columns: Sequence[str],
    names: Sequence[str],
    gaps: Mapping[_Place, str],
) -> Row:
    size = max(record.facts.size for record in records)
    by_column = {
        line_name(record, names): record for record in records if record.facts.size == size
    }
    first = next(iter(by_column.values())).facts
    fair = [record.median_s for record in by_column.values() if not is_contended(record.facts)]
    fastest_s = min(fair, default=None)
    target = " ".join((first.workload, first.device, first.direction, first.dtype))
    label = name.removeprefix(first.workload)
    cells = [
        _cell(by_column[column], fastest_s)
        if column in by_column
        else _gap(gaps.get((first.workload, column), ""))
        for column in columns
    ]
    return Row(
        [
            TableCell(name, target=f"{target}{label}"),
            TableCell(first.shape or f"{size:,}", size),
            *cells,
        ],
        {"workload": first.workload, "device": first.device},
    )


def _cell(record: Record, fastest_s: float | None) -> TableCell:
    said = marks(record.facts)
    hint = time(record.median_s) + (f", {said}" if said else "")
    if fastest_s is None or is_contended(record.facts):
        return TableCell(time(record.median_s), record.median_s, hint=hint)
    ratio = record.median_s / fastest_s
    step = bisect.bisect_right(_STEPS, ratio)
    return TableCell(times(ratio), ratio, hint=hint, shade=f"step{step}")


def _gap(reason: str) -> TableCell:
    return TableCell("gap" if reason else "", hint=reason, shade="gap" if reason else "")


def _gaps(runs: Sequence[Run], like: Record) -> dict[_Place, str]:
    """Why cases of the same device, direction and dtype were skipped, by their place.

    Args:
        runs: those that are shown.
        like: a record of the family.
    """
    facts = like.facts
    of_family = {
        record.facts.workload for record in _all(runs) if record.facts.family == facts.family
    }
    gaps = {}
    for missing in (missing for run in runs for missing in run.session.missing or ()):
        (workload, contestant), about = _of(missing)
        alike = about == (facts.device, facts.direction, facts.dtype) and workload in of_family
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
