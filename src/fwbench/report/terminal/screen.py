"""The section of fwbench at the end of a session, as lines of a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fwbench.records import equality
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, uncertainty
from fwbench.records.repeatability import Revisits
from fwbench.records.session_facts import StoredRace
from fwbench.records.stored import just_measured
from fwbench.report import condition, ranking
from fwbench.report.ranking import Contest, works
from fwbench.report.terminal import notes, training
from fwbench.report.terminal.layout import drawn
from fwbench.report.terminal.matrix import (
    DETAILS,
    EVERY_SIZE,
    IN_FULL,
    Matrix,
    failed,
    legend,
    matrices,
)
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
    #: The file that the records are stored in; empty if that is the journal alone.
    stored: str = ""
    #: The race of the session, which is above all of this.
    race: StoredRace | None = None
    #: Whether there is one: its folder may be read-only.
    has_journal: bool = True

    @cached_property
    def cases(self) -> Sequence[Measurement]:
        """The measured cases."""
        return [just_measured(entry, self.revisits) for entry in self.records]

    @property
    def facts(self) -> list[CaseFacts]:
        """The facts of each case."""
        return [case.facts for case in self.cases]


def screen(outcome: Outcome, view: View) -> list[Line]:
    """Machine and doubts, tables, notes, and at the end the answer and what to do next."""
    skips = _skips(outcome.skips, view)
    if not outcome.records:
        return skips
    equality.annotate(outcome.records, outcome.toggles)
    answers = notes.answer(outcome.cases, outcome.race, in_full=view.in_full)
    answer = _wrapped(answers, view, "bold")
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
            *_loops(outcome, view),
            *_short(training.replicas(outcome.cases, view.width), view),
            [
                *_wrapped(_notes(outcome, view), view),
                *skips,
                *wrapped(uncertainty(outcome.cases), view.width),
            ],
            [*answer, *_wrapped(_next_steps(outcome), view)],
        ]
    )


def _next_steps(outcome: Outcome) -> list[str]:
    has_journal = outcome.has_journal
    return notes.next_steps(outcome.cases, outcome.stored, outcome.race, has_journal=has_journal)


def _apart(parts: Iterable[Sequence[Line]]) -> list[Line]:
    """Parts with an empty line between them."""
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [(), *part] if lines else part
    return lines


def _doubts(outcome: Outcome, view: View) -> list[str]:
    """Doubts to be read before any number."""
    doubts = condition.notes(outcome.facts, outcome.cpus)
    contended = any(map(condition.is_contended, outcome.facts))
    return doubts if view.verbosity >= 0 else doubts[:contended]


def _tables(outcome: Outcome, view: View) -> Iterator[list[Line]]:
    """Operations as detailed as fits and training in full, under the meaning of their signs."""
    failures = [failed(facts) for facts in outcome.failed]
    every = works(outcome.cases)
    operations = [work for work in every if work.facts.direction != "train"]
    trained = [work for work in every if work.facts.direction == "train"]
    detail = IN_FULL if view.in_full else EVERY_SIZE
    if any(facts.epochs for facts in outcome.facts) and not _loops(outcome, view):
        detail = replace(detail, what=f"{detail.what} (-v: rates, accuracy, memory)")
    tables = [*_fitting(operations, failures, view), *matrices(trained, detail, failures)]
    meanings = wrapped(legend(tables), view.width)
    for table in tables:
        yield [*(meanings if table is tables[0] else ()), *drawn(table, view.width)]


def _fitting(
    operations: Sequence[Contest], failures: Sequence[Measurement], view: View
) -> list[Matrix]:
    """The most detailed tables that are short enough, or the least detailed."""
    if view.in_full:
        return matrices(operations, IN_FULL, failures)
    tables: list[Matrix] = []
    for detail in DETAILS:
        tables = matrices(operations, detail, failures)
        if sum(len(drawn(table, view.width)) for table in tables) <= view.height:
            break
    return tables


def _loops(outcome: Outcome, view: View) -> list[list[Line]]:
    """Tables of loops where nothing else was measured, or all is shown in full."""
    is_alone = all(facts.direction == "train" for facts in outcome.facts)
    tables = training.loops(outcome.cases, view.width, outcome.toggles)
    return _short(tables, view) if is_alone or view.in_full else []


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
