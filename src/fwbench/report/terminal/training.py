"""Training loops and replicas on the terminal: a table for each work, and notes on losses."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from fwbench.records import equality
from fwbench.records.facts import CaseFacts, Data
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import BreakEven
from fwbench.records.units import count, four_digits, mebibytes, time
from fwbench.report.condition import marks
from fwbench.report.scaling import OVERSUBSCRIBED, Scaling, Shared, is_scaling, scalings
from fwbench.report.section import Column, TableCell, megabytes, quantity, seconds, share
from fwbench.report.terminal.text import Line, aligned, wrapped
from fwbench.report.training import Known, break_even, groups, loop_name, loss_curves

T = TypeVar("T")

Cases = Sequence[Measurement]


def _table(columns: Sequence[Column[T]], items: Iterable[T], width: int) -> list[Line]:
    """A table whose first column, and the last one with the marks, begin at the left."""
    texts = [[column.cell(item).text for column in columns] for item in items]
    return aligned([[column.name for column in columns], *texts], (0, len(columns) - 1), width)


def loops(cases: Cases, width: int, known: Known) -> list[list[Line]]:
    """A table for each group of loops that did the same work."""
    name = Column[Measurement]("", lambda loop: TableCell(loop_name(loop, known)))
    columns = (name, *_LOOP_COLUMNS)
    return [
        [*wrapped(_heading(title, group[0].facts), width, "bold"), *_table(columns, group, width)]
        for title, group in groups(cases, known)
    ]


_LOOP_COLUMNS: tuple[Column[Measurement], ...] = (
    Column("epoch", lambda loop: seconds(loop.facts.epoch_s or 0.0)),
    Column("first", lambda loop: quantity(loop.facts.first_epoch_excess, _percents)),
    Column("per second", lambda loop: TableCell(_rate(loop))),
    Column("accuracy", lambda loop: TableCell(_accuracy(loop))),
    Column("CPUs", lambda loop: TableCell(_cpus(loop))),
    Column("memory", lambda loop: quantity(loop.facts.memory_above_bytes, mebibytes)),
    Column("", lambda loop: TableCell(marks(loop.facts))),
)


def _heading(title: str, first: CaseFacts) -> str:
    data = first.data or Data()
    tested = f"; tested on {first.tested_examples:,} examples" if first.tested_examples else ""
    return (
        f"{title}: {data.name} ({data.source}), "
        f"{len(equality.curve(first))} epochs of {count(first.steps_per_epoch or 0, 'step')}, "
        f"the first {first.warmup_epochs} outside the statistics{tested}"
    )


def _percents(share: float) -> str:
    return f"{100 * share:+.0f} %"


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


def notes(cases: Cases, known: Known) -> list[str]:
    """The largest distance of loss curves, and when compiling pays."""
    return [
        *(
            f"{curves.group}: loss curves are at most {curves.max_deviation:.2g} nats apart "
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
        f"{title}: unequal: {loop_name(loop, known)}: its loss curve is {why.nats:.2g} nats from "
        f"that of {why.to} (epoch {why.epoch}), and {why.allowed:.2g} are allowed: it is not the "
        "same training, and left out of rankings"
        for title, group in groups(cases, known)
        for loop in group
        if (why := loop.facts.unequal) is not None
    ]


def replicas(cases: Cases, width: int) -> list[list[Line]]:
    """A table for each work that replicas shared."""
    return [
        [*wrapped(f"replicas: {work.title}", width, "bold"), *_scaling(work, width)]
        for work in scalings(Shared(case) for case in cases if is_scaling(case))
    ]


def _scaling(work: Scaling, width: int) -> list[Line]:
    cases = [(name, case) for name, line in work.lines.items() for case in line.values()]
    names = {id(case): name for name, case in cases}
    columns: tuple[Column[Shared], ...] = (
        Column("", lambda case: TableCell(names[id(case)])),
        Column("replicas", lambda case: quantity(case.replicas, str)),
        Column("a step", lambda case: seconds(case.time_s)),
        Column("a second", lambda case: quantity(case.rate, four_digits)),
        Column("efficiency", lambda case: share(work.efficiency(case))),
        Column("MB sent", lambda case: megabytes(case.sent_bytes)),
        Column("skew", lambda case: share(case.skew)),
        Column("", lambda case: TableCell(_doubts(case))),
    )
    return _table(columns, [case for _, case in cases], width)


def _doubts(case: Shared) -> str:
    return ", ".join(filter(None, [OVERSUBSCRIBED * case.oversubscribed, marks(case.facts)]))
