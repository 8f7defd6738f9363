"""What is recorded of races and budgets can be read again, whatever launches bring."""

from __future__ import annotations

from fwbench.gate import standings
from fwbench.gate.allocation import Budget, Precise
from fwbench.records.session_facts import SessionFacts, StoredBudget, StoredUnsettled
from support.launches import Clock, history


def recorded(**times_s: list[float]) -> StoredBudget:
    """The budget of a session with these launches, as a reader has it."""
    budget = Budget(60.0, Clock())
    facts = SessionFacts(
        budget=standings.of_budget(budget, history(**times_s), Precise(budget, 0.03))
    )
    stored = SessionFacts.checked(dict(facts)).budget
    assert stored is not None
    return stored


def test_uncertain_times_come_first() -> None:
    """What is known to the resolution is not among them; a single launch is not known at all."""
    budget = recorded(a=[1.0, 1.0], b=[1.0, 1.1], c=[1.0, 2.0])
    assert [case.name for case in _unsettled(budget)] == ["c", "b"]
    (single,) = _unsettled(recorded(a=[1.0]))
    assert single.uncertainty is None


def test_launches_far_apart_can_be_recorded() -> None:
    """A factor of 100 between two is less certain than a record can say: as much as it can."""
    (far,) = _unsettled(recorded(a=[1.0, 100.0]))
    assert far.uncertainty == 1e9


def _unsettled(budget: StoredBudget) -> list[StoredUnsettled]:
    assert budget.unsettled is not None
    return budget.unsettled
