"""What is recorded of races and budgets can be read again, whatever launches bring."""

from __future__ import annotations

import pytest

from fwbench.gate import standings
from fwbench.gate.allocation import Budget, Precise
from fwbench.gate.races import FARTHEST, Group, Race
from fwbench.records.session_facts import SessionFacts, StoredBudget, StoredGroup, StoredUnsettled
from support.launches import CASE_S, OVERHEAD_S, Clock, history


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


@pytest.mark.parametrize(
    ("launches", "more_launches", "more_than"), [(1, None, None), (20, None, FARTHEST)]
)
def test_a_group_without_a_forecast_says_why(
    launches: int, more_launches: int | None, more_than: int | None
) -> None:
    """After one launch nothing is known; times that jump about are not decided in 200 more."""
    group = raced(a=[1.0] * launches, b=([0.5, 2.0] * launches)[:launches])
    assert group.verdict == "undecided"
    assert (group.more_launches, group.more_s) == (more_launches, None)
    assert group.more_than == more_than


def test_a_group_with_a_forecast_says_how_long_it_takes() -> None:
    """In launches of its contestants."""
    group = raced(a=[1.0] * 5, b=[1.1] * 5)
    assert group.more_launches is not None
    assert group.more_s == group.more_launches * (2 * CASE_S + OVERHEAD_S)
    assert group.more_than is None


def raced(**times_s: list[float]) -> StoredGroup:
    """The group of a race with these launches, as a reader has it."""
    made = history(**times_s)
    group = Group("work", {case: case for case in times_s}, 0.03)
    race = Race(lambda _: [group], Budget(60.0, Clock()))
    race.look(made)
    stored = SessionFacts.checked({"race": dict(standings.of_race(race, made))}).race
    assert stored is not None
    return stored.groups[0]


def _unsettled(budget: StoredBudget) -> list[StoredUnsettled]:
    assert budget.unsettled is not None
    return budget.unsettled
