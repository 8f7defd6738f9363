"""Training loops on the terminal: epochs, rates, accuracy, and what became of their losses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fwbench.records import equality
from fwbench.records.facts import CaseFacts, Data
from fwbench.records.session_facts import BreakEven
from fwbench.records.units import count, mebibytes, time
from fwbench.report.loops import Entry, Known, Loop, break_even, groups, loss_curves
from fwbench.report.ranking.condition import marks
from fwbench.report.terminal.text import Line, aligned, wrapped

_HEADINGS = ("", "epoch", "first", "per second", "accuracy", "CPUs", "memory", "")

#: The first column and the last, which has the marks, are texts.
_TEXTS = (0, len(_HEADINGS) - 1)


def tables(records: Sequence[Entry], width: int, known: Known) -> list[list[Line]]:
    """A table for each group of loops that did the same work.

    Args:
        records: pytest-benchmark's entries.
        width: of the terminal.
        known: the toggles of the session, by name.
    """
    return [
        [*wrapped(_heading(title, loops[0].facts), width, "bold"), *_table(loops, width)]
        for title, loops in groups(records, known)
    ]


def _heading(title: str, first: CaseFacts) -> str:
    data = first.data or Data()
    tested = f"; tested on {first.tested_examples:,} examples" if first.tested_examples else ""
    return (
        f"{title}: {data.name} ({data.source}), "
        f"{len(equality.curve(first))} epochs of {count(first.steps_per_epoch or 0, 'step')}, "
        f"the first {first.warmup_epochs} outside the statistics{tested}"
    )


def _table(loops: Iterable[Loop], width: int) -> list[Line]:
    return aligned([_HEADINGS, *(_row(loop) for loop in loops)], _TEXTS, width)


def _row(loop: Loop) -> tuple[str, ...]:
    facts = loop.facts
    rate, unit = facts.images_per_s, "images"
    if rate is None:
        rate, unit = facts.tokens_per_s, "tokens"
    tested = (facts.test_accuracy or [])[-1:]
    above = facts.memory_above_bytes
    return (
        loop.name,
        time(facts.epoch_s or 0.0),
        f"{100 * (facts.first_epoch_excess or 0):+.0f} %",
        f"{rate or 0:,.0f} {unit}",
        "".join(f"{100 * test.accuracy:.2f} %" for test in tested),
        f"{(facts.cpu_utilization or 0) * (facts.threads or 1):.1f}",
        "" if above is None else mebibytes(above),
        marks(facts),
    )


def notes(records: Sequence[Entry], known: Known) -> list[str]:
    """How far loss curves lie apart, and when compiling pays.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.
    """
    return [
        *(
            f"{curves.group}: loss curves lie at most {curves.max_deviation:.2g} nats apart "
            f"({' and '.join(curves.between)}, epoch {curves.epoch})"
            for curves in loss_curves(records, known)
        ),
        *(
            f"{found.group}: {found.name}: compiling ({time(found.compile_s)}) {_pays(found)}"
            for found in break_even(records, known)
        ),
    ]


def _pays(found: BreakEven) -> str:
    if found.steps is None:
        return "does not pay: no faster than eager"
    return f"breaks even after {count(found.steps, 'step')}"


def unequal(records: Sequence[Entry], known: Known) -> list[str]:
    """The loops that trained otherwise than most, and so are not ranked.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.
    """
    return [
        f"{title}: unequal: {loop.name}: its loss curve lies {why.nats:.2g} nats from that of "
        f"{why.to} (epoch {why.epoch}), and {why.allowed:.2g} are allowed: it is not the same "
        "training, and left out of rankings"
        for title, loops in groups(records, known)
        for loop in loops
        if (why := loop.facts.unequal) is not None
    ]
