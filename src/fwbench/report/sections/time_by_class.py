"""Where the time of a call goes: shares by class of operators, and the operators themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fwbench.frameworks.profiler import CLASSES
from fwbench.records.facts import CaseFacts, Profile
from fwbench.records.measurement import Measurement
from fwbench.records.units import time
from fwbench.report.drawing import stacked
from fwbench.report.model import Run
from fwbench.report.section import Row, Section, TableCell, by_work, row_keys, seconds, share

ORDER = 45

_MEASURES = ("operators", "call", "call profiled", "overhead", "nothing profiled")

_OPERATORS = ("case", "operator", "class", "a call", "of operators", "calls")

_NOTE = (
    "A few calls of each case ran under its framework's own profiler, in a process of their own; "
    "none of them was timed. Shares are of the operators' own times, which may overlap where "
    "operators run side by side. Compilers make one kernel of several operators: fused."
)

#: Records by the names of their lines.
_Named = Mapping[str, Measurement]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """Two sections for each work that was profiled: classes, and operators.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = (record for run in runs for record in run.records)
    measured = (record for record in records if record.facts.profile is not None)
    return [section for records in by_work(measured, names) for section in _sections(records)]


def _sections(records: _Named) -> Iterator[Section]:
    facts = next(iter(records.values())).facts
    title = f"{facts.workload} {facts.direction} {facts.device} {facts.dtype} {facts.size_text}"
    profiles = {name: _profile(record) for name, record in records.items()}
    bars = {name: profile.shares for name, profile in profiles.items() if profile.shares}
    heading = f"where the time goes: {title}"
    classes = [each for each in CLASSES if any(each in shares for shares in bars.values())]
    yield Section(
        heading,
        ("case", *classes, *_MEASURES),
        [_row(name, record, classes) for name, record in records.items()],
        [stacked.draw(heading, bars, CLASSES, _percent)] if bars else [],
        [_NOTE],
    ).without_empty_columns(_MEASURES)
    rows = [row for name, record in records.items() for row in _operators(name, record)]
    if rows:
        yield Section(f"operators: {title}", _OPERATORS, rows)


def _profile(record: Measurement) -> Profile:
    profile = record.facts.profile
    assert profile is not None  # noqa: S101 (only those that were profiled are shown)
    return profile


def _row(name: str, record: Measurement, classes: Sequence[str]) -> Row:
    profile = _profile(record)
    shares = profile.shares or {}
    return Row(
        [
            TableCell(name),
            *(share(shares.get(each)) for each in classes),
            seconds(profile.operators_s),
            seconds(record.facts.call_s),
            seconds(profile.call_s),
            _overhead(record.facts),
            TableCell(profile.gap or ""),
        ],
        row_keys(record),
    )


def _overhead(facts: CaseFacts) -> TableCell:
    overhead = facts.profile_overhead
    return TableCell("" if overhead is None else f"{overhead:+.0%}", overhead)


def _operators(name: str, record: Measurement) -> Iterator[Row]:
    profile = _profile(record)
    for operator in profile.operators or ():
        yield Row(
            [
                TableCell(name),
                TableCell(operator.name),
                TableCell(operator.operator_class),
                TableCell(time(operator.time_s), operator.time_s),
                share(operator.time_s / profile.operators_s if profile.operators_s else None),
                TableCell(f"{operator.calls:g}", operator.calls),
            ],
            row_keys(record),
        )


def _percent(value: float) -> str:
    return f"{value:.0%}"
