"""Replicas on the terminal: what each number of them took, gained and sent."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.units import four_digits, time
from fwbench.report import scaling
from fwbench.report.ranking.condition import marks
from fwbench.report.ranking.contests import Timed
from fwbench.report.scaling import Scaling, Shared
from fwbench.report.terminal.text import Line, aligned, wrapped

_HEADINGS = ("", "replicas", "a step", "a second", "efficiency", "MB sent", "skew", "")

#: The first column and the last, which has the marks, are texts.
_TEXTS = (0, len(_HEADINGS) - 1)

_OVERSUBSCRIBED = "more threads than CPUs"


def tables(cases: Sequence[Timed], width: int) -> list[list[Line]]:
    """A table for each work that replicas shared.

    Args:
        cases: all that were measured.
        width: of the terminal.
    """
    shared = [_case_of(timed) for timed in cases if scaling.was_asked(timed.name)]
    return [
        [*wrapped(f"replicas: {work.title}", width, "bold"), *_table(work, width)]
        for work in scaling.scalings(shared)
    ]


def _case_of(timed: Timed) -> Shared:
    step_s = timed.time_s / scaling.parts_of(timed.facts)
    return Shared(scaling.alone(timed.name), step_s, step_s, step_s, timed.facts)


def _table(work: Scaling, width: int) -> list[Line]:
    rows = [_row(work, name, case) for name, line in work.lines.items() for case in line.values()]
    return aligned([_HEADINGS, *rows], _TEXTS, width)


def _row(work: Scaling, name: str, case: Shared) -> tuple[str, ...]:
    gang, rate, efficiency = case.gang, case.rate, work.efficiency(case)
    sent = None if gang is None else gang.bytes_per_step
    oversubscribed = gang is not None and gang.oversubscribed
    return (
        name,
        str(case.replicas),
        time(case.time_s),
        "" if rate is None else four_digits(rate),
        "" if efficiency is None else f"{efficiency:.0%}",
        "" if sent is None else four_digits(sent / 1e6),
        "" if gang is None else f"{gang.skew:.0%}",
        ", ".join(filter(None, [_OVERSUBSCRIBED * oversubscribed, marks(case.facts)])),
    )
