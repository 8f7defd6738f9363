"""Training loops and replicas on the terminal: a table for each work, and notes on losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fwbench.records import equality
from fwbench.records.facts import CaseFacts, Data
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import BreakEven
from fwbench.records.units import count, four_digits, mebibytes, time
from fwbench.report.ranking.condition import marks
from fwbench.report.scaling import Scaling, Shared, is_scaling, scalings
from fwbench.report.terminal.text import Line, aligned, wrapped
from fwbench.report.training import Known, break_even, groups, loop_name, loss_curves

T = TypeVar("T")

Cases = Sequence[Measurement]

#: A column: heading, and the text of a row.
_Column = tuple[str, Callable[[T], str]]

_OVERSUBSCRIBED = "more threads than CPUs"


def _table(columns: Sequence[_Column[T]], rows: Sequence[T], width: int) -> list[Line]:
    """A table whose first column, and the last one with the marks, begin at the left."""
    texts = [[heading for heading, _ in columns], *([cell(r) for _, cell in columns] for r in rows)]
    return aligned(texts, (0, len(columns) - 1), width)


# Training loops


def loops(cases: Cases, width: int, known: Known) -> list[list[Line]]:
    """A table for each group of loops that did the same work."""
    columns: list[_Column[Measurement]] = [
        ("", lambda loop: loop_name(loop, known)),
        ("epoch", lambda loop: time(loop.facts.epoch_s or 0.0)),
        ("first", lambda loop: f"{100 * (loop.facts.first_epoch_excess or 0):+.0f} %"),
        ("per second", _rate),
        ("accuracy", _accuracy),
        ("CPUs", _cpus),
        ("memory", _memory),
        ("", lambda loop: marks(loop.facts)),
    ]
    return [
        [*wrapped(_heading(title, group[0].facts), width, "bold"), *_table(columns, group, width)]
        for title, group in groups(cases, known)
    ]


def _heading(title: str, first: CaseFacts) -> str:
    data = first.data or Data()
    tested = f"; tested on {first.tested_examples:,} examples" if first.tested_examples else ""
    return (
        f"{title}: {data.name} ({data.source}), "
        f"{len(equality.curve(first))} epochs of {count(first.steps_per_epoch or 0, 'step')}, "
        f"the first {first.warmup_epochs} outside the statistics{tested}"
    )


def _rate(loop: Measurement) -> str:
    rate, unit = loop.facts.images_per_s, "images"
    if rate is None:
        rate, unit = loop.facts.tokens_per_s, "tokens"
    return f"{rate or 0:,.0f} {unit}"


def _accuracy(loop: Measurement) -> str:
    tested = (loop.facts.test_accuracy or [])[-1:]
    return "".join(f"{100 * test.accuracy:.2f} %" for test in tested)


def _cpus(loop: Measurement) -> str:
    return f"{(loop.facts.cpu_utilization or 0) * (loop.facts.threads or 1):.1f}"


def _memory(loop: Measurement) -> str:
    above = loop.facts.memory_above_bytes
    return "" if above is None else mebibytes(above)


def notes(cases: Cases, known: Known) -> list[str]:
    """The largest distance of loss curves, and when compiling pays."""
    return [
        *(
            f"{curves.group}: loss curves lie at most {curves.max_deviation:.2g} nats apart "
            f"({' and '.join(curves.between)}, epoch {curves.epoch})"
            for curves in loss_curves(cases, known)
        ),
        *(
            f"{even.group}: {even.name}: compiling ({time(even.compile_s)}) {_pays(even)}"
            for even in break_even(cases, known)
        ),
    ]


def _pays(even: BreakEven) -> str:
    if even.steps is None:
        return "does not pay: no faster than eager"
    return f"breaks even after {count(even.steps, 'step')}"


def unequal(cases: Cases, known: Known) -> list[str]:
    """The loops that trained otherwise than most, and so are not ranked."""
    return [
        f"{title}: unequal: {loop_name(loop, known)}: its loss curve lies {why.nats:.2g} nats from "
        f"that of {why.to} (epoch {why.epoch}), and {why.allowed:.2g} are allowed: it is not the "
        "same training, and left out of rankings"
        for title, group in groups(cases, known)
        for loop in group
        if (why := loop.facts.unequal) is not None
    ]


# Replicas


def replicas(cases: Cases, width: int) -> list[list[Line]]:
    """A table for each work that replicas shared."""
    return [
        [*wrapped(f"replicas: {work.title}", width, "bold"), *_scaling(work, width)]
        for work in scalings(Shared(case) for case in cases if is_scaling(case))
    ]


def _scaling(work: Scaling, width: int) -> list[Line]:
    names = {id(case): name for name, line in work.lines.items() for case in line.values()}
    columns: list[_Column[Shared]] = [
        ("", lambda case: names[id(case)]),
        ("replicas", lambda case: str(case.replicas)),
        ("a step", lambda case: time(case.time_s)),
        ("a second", lambda case: "" if case.rate is None else four_digits(case.rate)),
        ("efficiency", lambda case: _percent(work.efficiency(case))),
        ("MB sent", _sent),
        ("skew", lambda case: _percent(None if case.gang is None else case.gang.skew)),
        ("", _doubts),
    ]
    return _table(columns, [case for line in work.lines.values() for case in line.values()], width)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _sent(case: Shared) -> str:
    sent = None if case.gang is None else case.gang.bytes_per_step
    return "" if sent is None else four_digits(sent / 1e6)


def _doubts(case: Shared) -> str:
    oversubscribed = case.gang is not None and case.gang.oversubscribed
    return ", ".join(filter(None, [_OVERSUBSCRIBED * oversubscribed, marks(case.facts)]))
