"""``--fw-race``: who is fastest at the same work, decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from fwbench.gate.budget import History, budget_facts
from fwbench.gate.race import Race, RaceGroup, race_facts
from fwbench.grid import Cell
from fwbench.plugin.budget import BudgetHooks
from fwbench.plugin.session import CELL, Session, is_measured
from fwbench.records import equality
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import SessionFacts
from fwbench.report import races
from fwbench.report.ranking.contests import contests

#: What a race may take if nobody says.
BUDGET_S = 600.0


class Entrants:
    """The hook that enters the cases of a race, and which of them do the same work.

    Args:
        threshold: the smallest difference that matters, unless a test's marker says.
        session: of fwbench.
    """

    def __init__(self, threshold: float, session: Session) -> None:
        self.threshold = threshold
        self.session = session
        self._cells: dict[str, Cell] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Enter the cases of a session, and refuse a race of one.

        Raises:
            UsageError: no case has a rival.
        """
        self._cells = {item.nodeid: item.stash[CELL] for item in items if is_measured(item)}
        rivals = Counter(cell.group for cell in self._cells.values())
        if rivals and max(rivals.values()) < 2:  # noqa: PLR2004 (one alone is no race)
            names = ", ".join(dict.fromkeys(map(_name, self._cells.values())))
            raise pytest.UsageError(
                f"--fw-race compares contestants that do the same work, and each of the "
                f"{len(rivals)} groups has one ({names}): add a framework or an execution "
                "(--fw, --fw-execution), or leave out --fw-race"
            )

    def groups(self, history: History) -> list[RaceGroup]:
        """The groups of at least two contestants, by what their first launch recorded."""
        known = {*history.cases}
        facts = {case: history.facts(case) for case in self._cells if case in known}
        recorded = {case: each for case, each in facts.items() if each is not None}
        unequal = equality.unequal(recorded, self.session.known_toggles)
        equal = [
            Measurement(each, (history.time_s(case),), nodeid=case)
            for case, each in recorded.items()
            if case not in unequal and not history.lost(case)
        ]
        return [
            self._group(contest.title, [entrant.nodeid for entrant in contest.entrants])
            for contest in contests(equal)
        ]

    def _group(self, title: str, cases: Sequence[str]) -> RaceGroup:
        own = [self._cells[case].threshold for case in cases]
        threshold = next((share for share in own if share is not None), self.threshold)
        return RaceGroup(title, {case: _name(self._cells[case]) for case in cases}, threshold)


def _name(cell: Cell) -> str:
    """Framework and execution, and the toggles that were asked for."""
    toggles = (f"{name}={value}" for name, value in cell.toggles)
    return " ".join([cell.framework, cell.execution, *toggles])


class RaceHooks(BudgetHooks[Race]):
    """The hooks that tell who won."""

    title = "fwbench race"

    def facts(self) -> SessionFacts:
        """The verdicts by now, and how long they took."""
        history = self.runner.history
        self.chooser.drop_losers(history)
        return SessionFacts(
            budget=budget_facts(self.budget, history),
            race=race_facts(self.chooser, history),
        )

    def lines(self, facts: SessionFacts, width: int) -> Sequence[str]:
        """The same, for people."""
        every = self.config.option.verbose > 0
        spent = races.budget_lines(facts.budget, width) if facts.budget else []
        return [*(races.lines(facts.race, width, every=every) if facts.race else []), *spent]
