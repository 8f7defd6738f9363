"""The section of fwbench at the end of a session, as lines of a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fwbench.records import equality
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, uncertainty
from fwbench.records.repeatability import Revisits
from fwbench.records.stored import just_measured
from fwbench.report import condition, ranking
from fwbench.report.ranking import Contest, works
from fwbench.report.terminal import notes, training
from fwbench.report.terminal.layout import drawn
from fwbench.report.terminal.matrix import DETAILS, EVERY_SIZE, Matrix, failed, legend, matrices
from fwbench.report.terminal.text import Line, wrapped
from fwbench.terms.toggles import TOGGLES, Toggle

#: Tables of training loops, and of replicas, with more lines are shown with ``-v``.
_LOOP_LINES = 12


@dataclass(frozen=True)
class View:
    """Amount of detail, and width."""

    width: int = 100
    #: Lines that the table of operations may take, unless it is shown in full.
    height: int = 40
    #: As pytest has it: 1 shows all in full, -1 the answer and what is in doubt.
    verbosity: int = 0
    #: Whether pytest lists what was skipped (``-rs``).
    skips_listed: bool = False

    @property
    def in_full(self) -> bool:
        """True if nothing is summed up."""
        return self.verbosity > 0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a session."""

    records: Sequence[Mapping[str, Any]]
    skips: Sequence[str] = ()
    failed: Sequence[CaseFacts] = ()
    toggles: Mapping[str, Toggle] = field(default_factory=lambda: TOGGLES)
    cpus: int | None = None
    traces: str = ""
    revisits: Revisits = field(default_factory=dict)

    @cached_property
    def cases(self) -> Sequence[Measurement]:
        """The measured cases."""
        return [just_measured(entry, self.revisits) for entry in self.records]

    @property
    def facts(self) -> list[CaseFacts]:
        """The facts of each case."""
        return [case.facts for case in self.cases]


def screen(outcome: Outcome, view: View) -> list[Line]:
    """Machine and doubts, tables, notes, and the answer last, where a terminal is looked at."""
    skips = _skips(outcome.skips, view)
    if not outcome.records:
        return skips
    equality.annotate(outcome.records, outcome.toggles)
    answer = _wrapped(notes.answer(outcome.cases), view, "bold")
    doubts = _wrapped(_doubts(outcome, view), view, "yellow")
    if view.verbosity < 0:
        return _apart([doubts, answer])
    return _apart(
        [
            [
                *wrapped(notes.headline(outcome.cases), view.width),
                *_wrapped(ranking.notes(outcome.facts), view),
                *doubts,
            ],
            *_tables(outcome, view),
            *_short(training.loops(outcome.cases, view.width, outcome.toggles), view),
            *_short(training.replicas(outcome.cases, view.width), view),
            [*_wrapped(_notes(outcome, view), view), *skips],
            [*wrapped(uncertainty(outcome.cases), view.width), *answer],
        ]
    )


def _apart(parts: Iterable[Sequence[Line]]) -> list[Line]:
    """Parts with an empty line between them."""
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [(), *part] if lines else part
    return lines


def _doubts(outcome: Outcome, view: View) -> list[str]:
    """Doubts to be read before any number; the others have signs in the tables."""
    doubts = condition.notes(outcome.facts, outcome.cpus)
    contended = any(map(condition.is_contended, outcome.facts))
    return doubts if view.in_full else doubts[:contended]


def _tables(outcome: Outcome, view: View) -> Iterator[list[Line]]:
    """Operations as detailed as fits, training in full, and what their signs mean."""
    failures = [failed(facts) for facts in outcome.failed]
    every = works(outcome.cases)
    operations = [work for work in every if work.facts.direction != "train"]
    trained = [work for work in every if work.facts.direction == "train"]
    tables = [*_fitting(operations, failures, view), *matrices(trained, EVERY_SIZE, failures)]
    rows = [row for table in tables for row in table.rows]
    used = {sign for row in rows for cell in row.cells.values() for sign in cell.signs}
    for table in tables:
        last = table is tables[-1]
        yield [*drawn(table, view.width), *(wrapped(legend(used), view.width) if last else ())]


def _fitting(
    operations: Sequence[Contest], failures: Sequence[Measurement], view: View
) -> list[Matrix]:
    """The most detailed tables that are short enough, or the least detailed."""
    tables: list[Matrix] = []
    for detail in DETAILS:
        tables = matrices(operations, detail, failures)
        lines = sum(len(drawn(table, view.width)) for table in tables)
        if view.in_full or lines <= view.height:
            break
    return tables


def _short(tables: list[list[Line]], view: View) -> list[list[Line]]:
    """Tables of loops, or of replicas, if they are short or all is shown in full."""
    return tables if view.in_full or sum(map(len, tables)) <= _LOOP_LINES else []


def _notes(outcome: Outcome, view: View) -> Iterator[str]:
    cases, toggles = outcome.cases, outcome.toggles
    if view.in_full:
        yield from notes.geometric_means(cases)
        yield from training.notes(cases, toggles)
        yield from notes.overhead(cases)
    yield from training.unequal(cases, toggles)
    yield from notes.dispatch(cases, in_full=view.in_full)
    yield from notes.energy(cases, in_full=view.in_full)
    yield from notes.unsteady(cases, in_full=view.in_full)
    yield from notes.profiles(cases, outcome.traces, in_full=view.in_full)
    yield from notes.memory(cases, in_full=view.in_full)


def _skips(skips: Sequence[str], view: View) -> list[Line]:
    """One line; none where pytest itself lists what was skipped."""
    if view.skips_listed or view.verbosity < 0:
        return []
    return _wrapped(notes.skipped(skips, in_full=view.in_full), view)


def _wrapped(texts: Iterable[str], view: View, style: str = "") -> list[Line]:
    return [line for text in texts for line in wrapped(text, view.width, style)]
