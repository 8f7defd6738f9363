"""Training loops and replicas on the terminal: a table for each work, and notes on losses."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from fwbench.records import equality
from fwbench.records.facts import CaseFacts, Data
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import BreakEven
from fwbench.records.units import count, time
from fwbench.report.condition import marks
from fwbench.report.scaling import OVERSUBSCRIBED, Shared, SharedCase, is_scaling, rows, scalings
from fwbench.report.section import Column, TableCell, columns, quantity
from fwbench.report.terminal.text import Line, aligned, wrapped
from fwbench.report.training import Known, break_even, groups, loop_name, loss_curves

T = TypeVar("T")

Cases = Sequence[Measurement]


def _table(shown: Sequence[Column[T]], items: Iterable[T], width: int) -> list[Line]:
    """A table whose first column, and the last one with the marks, begin at the left."""
    texts = [[column.cell(item).text for column in shown] for item in items]
    return aligned([[column.name for column in shown], *texts], (0, len(shown) - 1), width)


def loops(cases: Cases, width: int, known: Known) -> list[list[Line]]:
    """A table for each group of loops that did the same work."""
    name = Column[Measurement]("", lambda loop: TableCell(loop_name(loop, known)))
    shown = (name, *_LOOP_COLUMNS)
    return [
        [*wrapped(_heading(title, group[0].facts), width, "bold"), *_table(shown, group, width)]
        for title, group in groups(cases, known)
    ]


def _heading(title: str, first: CaseFacts) -> str:
    data = first.data or Data()
    tested = f"; tested on {first.tested_examples:,} examples" if first.tested_examples else ""
    return (
        f"{title}: {data.name} ({data.source}), "
        f"{count(len(equality.curve(first)), 'epoch')} of "
        f"{count(first.steps_per_epoch or 0, 'step')}, "
        f"the first {_several(first.warmup_epochs)}outside the statistics{tested}"
    )


def _several(number: int | None) -> str:
    return f"{number} " if number != 1 else ""


def _first(loop: Measurement) -> TableCell:
    return quantity(loop.facts.first_epoch_excess, lambda share: f"{100 * share:+.0f} %")


def _rate(loop: Measurement) -> TableCell:
    rate, unit = loop.facts.images_per_s, "images"
    if rate is None:
        rate, unit = loop.facts.tokens_per_s, "tokens"
    return TableCell(f"{rate or 0:,.0f} {unit}")


def _accuracy(loop: Measurement) -> TableCell:
    tested = (loop.facts.test_accuracy or [])[-1:]
    return TableCell("".join(f"{100 * test.accuracy:.2f} %" for test in tested))


def _cpus(loop: Measurement) -> TableCell:
    busy = (loop.facts.cpu_utilization or 0) * (loop.facts.threads or 1)
    return TableCell(f"{busy:.1f}")


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
        [
            *wrapped(f"replicas: {work.title}", width, "bold"),
            *_table(_REPLICA_COLUMNS, rows([work]), width),
        ]
        for work in scalings(Shared(case) for case in cases if is_scaling(case))
    ]


def _doubts(row: SharedCase) -> TableCell:
    doubts = [OVERSUBSCRIBED * row.case.oversubscribed, marks(row.case.facts)]
    return TableCell(", ".join(filter(None, doubts)))


_LOOP_COLUMNS = (
    *columns("loops-on-terminal", _first, _rate, _accuracy, _cpus),
    Column[Measurement]("", lambda loop: TableCell(marks(loop.facts))),
)

_REPLICA_COLUMNS = (*columns("replicas-on-terminal"), Column("", _doubts))
