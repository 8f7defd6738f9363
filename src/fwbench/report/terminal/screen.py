"""The section of fwbench at the end of a session, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fwbench.records import equality
from fwbench.records.facts import CaseFacts
from fwbench.report.ranking import condition
from fwbench.report.ranking.contests import Contest, works
from fwbench.report.terminal import notes, session, training
from fwbench.report.terminal.contestants import Entry, facts_of, timed
from fwbench.report.terminal.layout import drawn
from fwbench.report.terminal.marks import legend
from fwbench.report.terminal.matrix import DETAILS, EVERY_SIZE, Matrix, matrices
from fwbench.report.terminal.text import Line, wrapped
from fwbench.toggles import TOGGLES, Toggle

#: Tables of training loops with more lines are shown with ``-v``.
_LOOP_LINES = 12


@dataclass(frozen=True)
class View:
    """How much is shown, and how wide.

    Attributes:
        width: columns of the terminal.
        height: lines that the table of operations may take, unless it is shown in full.
        verbosity: as pytest has it: 1 shows all in full, -1 the answer and what is in doubt.
        skips_listed: whether pytest lists what was skipped (``-rs``).
    """

    width: int = 100
    height: int = 40
    verbosity: int = 0
    skips_listed: bool = False

    @property
    def in_full(self) -> bool:
        """Whether nothing is summed up."""
        return self.verbosity > 0


def screen(
    records: Sequence[Entry],
    skips: Sequence[str],
    view: View,
    toggles: Mapping[str, Toggle] = TOGGLES,
    cpus: int | None = None,
) -> list[Line]:
    """Machine and doubts, tables, notes, and the answer last, where a terminal is looked at.

    Args:
        records: pytest-benchmark's entries.
        skips: the reason of each case that was skipped.
        view: how much is shown.
        toggles: those of the session, by name.
        cpus: of the machine; None where it is not known.
    """
    equality.annotate(records, toggles)
    parts = _measured(records, view, toggles, cpus) if records else [[]]
    answer = session.answer([timed(entry) for entry in records]) if records else []
    *parts, told = parts
    return _apart([*parts, [*told, *_skips(skips, view)], _wrapped(answer, view, "bold")])


def _apart(parts: Iterable[Sequence[Line]]) -> list[Line]:
    """Parts with an empty line between them."""
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [(), *part] if lines else part
    return lines


def _measured(
    records: Sequence[Entry], view: View, toggles: Mapping[str, Toggle], cpus: int | None
) -> list[list[Line]]:
    cases = [facts_of(entry) for entry in records]
    doubts = _wrapped(_doubts(cases, view, cpus), view, "yellow")
    if view.verbosity < 0:
        return [doubts]
    return [
        [*wrapped(session.headline(cases), view.width), *doubts],
        *_tables(works(map(timed, records)), view),
        *_loops(records, view, toggles),
        _notes(records, view, toggles),
    ]


def _doubts(cases: Sequence[CaseFacts], view: View, cpus: int | None) -> list[str]:
    """What must be known before any number is read; the others have signs in the tables."""
    doubts = condition.notes(cases, cpus)
    contended = any(map(condition.is_contended, cases))
    return doubts if view.in_full else doubts[:contended]


def _tables(held: Sequence[Contest], view: View) -> Iterator[list[Line]]:
    """Operations as detailed as fits, training in full, and what their signs mean."""
    trained = [work for work in held if _is_training(work)]
    operations = [work for work in held if not _is_training(work)]
    tables = [*_fitting(operations, view), *matrices(trained, EVERY_SIZE)]
    rows = [row for table in tables for row in table.rows]
    used = {sign for row in rows for cell in row.cells.values() for sign in cell.signs}
    for table in tables:
        last = table is tables[-1]
        yield [*drawn(table, view.width), *(wrapped(legend(used), view.width) if last else ())]


def _is_training(work: Contest) -> bool:
    return work.entrants[0].facts.direction == "train"


def _fitting(operations: Sequence[Contest], view: View) -> list[Matrix]:
    """The most detailed tables that are short enough, or the least detailed.

    Where nobody has a rival there is no ratio to sum up.
    """
    details = DETAILS if any(len(work.ranked) > 1 for work in operations) else (EVERY_SIZE,)
    tables: list[Matrix] = []
    for detail in details:
        tables = matrices(operations, detail)
        lines = sum(len(drawn(table, view.width)) for table in tables)
        if view.in_full or lines <= view.height:
            break
    return tables


def _loops(records: Sequence[Entry], view: View, toggles: Mapping[str, Toggle]) -> list[list[Line]]:
    tables = training.tables(records, view.width, toggles)
    return tables if view.in_full or sum(map(len, tables)) <= _LOOP_LINES else []


def _notes(records: Sequence[Entry], view: View, toggles: Mapping[str, Toggle]) -> list[Line]:
    cases, in_full = [facts_of(entry) for entry in records], view.in_full
    named = [(str(entry["param"]), facts) for entry, facts in zip(records, cases, strict=True)]
    extra = [
        *notes.geometric_means([timed(entry) for entry in records]),
        *training.notes(records, toggles),
        *notes.overhead(cases),
    ]
    told = [
        *(extra if in_full else ()),
        *training.unequal(records, toggles),
        *notes.dispatch(cases, in_full=in_full),
        *notes.unsteady(named, in_full=in_full),
    ]
    return _wrapped(told, view)


def _skips(skips: Sequence[str], view: View) -> list[Line]:
    """One line; none where pytest itself lists what was skipped."""
    if view.skips_listed or view.verbosity < 0:
        return []
    return _wrapped(notes.skipped(skips, in_full=view.in_full), view)


def _wrapped(texts: Iterable[str], view: View, style: str = "") -> list[Line]:
    return [line for text in texts for line in wrapped(text, view.width, style)]
