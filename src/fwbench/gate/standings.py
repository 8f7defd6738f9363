"""What became of a race or a budget, for the record of its session."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from fwbench.gate.allocation import Budget, Precise, uncertainty
from fwbench.gate.history import History
from fwbench.gate.races import FARTHEST, LEVEL, Group, Outcome, Race, Standing
from fwbench.records.session_facts import (
    StoredBudget,
    StoredContestant,
    StoredGroup,
    StoredRace,
    StoredUnsettled,
)
from fwbench.records.units import SHARE


def of_race(race: Race, history: History) -> StoredRace:
    """The verdicts of a race.

    Args:
        race: as it stands.
        history: of its launches.
    """
    return StoredRace(level=LEVEL, groups=[_group(group, history) for group in race.groups])


def of_budget(budget: Budget, history: History, precise: Precise | None = None) -> StoredBudget:
    """What a session did with its time.

    Args:
        budget: its time.
        history: of its launches.
        precise: how well times were to be known; None for a race.
    """
    return StoredBudget(
        budget_s=budget.total_s,
        took_s=history.took_s,
        launches=history.launches,
        cases=sum(history.number(case) > 0 for case in history.cases),
        launch_s=history.cost_s(history.cases) if history.launches else None,
        resolution=None if precise is None else precise.resolution,
        unsettled=None if precise is None else _unsettled(precise, history),
    )


def _unsettled(precise: Precise, history: History) -> list[StoredUnsettled]:
    """The cases whose time is not known well enough, the least certain first."""
    shares = {
        case: uncertainty(case, history) for case in precise.unsettled(history.cases, history)
    }
    # Two launches that differ by a factor of 27 are less certain than a record can say.
    return [
        StoredUnsettled(
            case=case,
            name=case.partition("[")[2].rstrip("]") or case,
            uncertainty=min(share, SHARE.most) if math.isfinite(share) else None,
        )
        for case, share in sorted(shares.items(), key=lambda known: (-known[1], known[0]))
    ]


def _group(group: Group, history: History) -> StoredGroup:
    outcome = group.outcome(history)
    more = group.more(history) if outcome is Outcome.UNDECIDED and group.open(history) else None
    known = int(more) if more is not None and math.isfinite(more) else None
    racing, standings = group.racing(history), group.standings(history)
    return StoredGroup(
        title=group.title,
        verdict=outcome.value,
        threshold=group.threshold,
        contestants=[
            _contestant(group, c, standings[c], history) for c in _ordered(group, history)
        ],
        more_launches=known,
        more_s=None if known is None else known * history.cost_s(racing),
        more_than=FARTHEST if more == math.inf else None,
    )


def _ordered(group: Group, history: History) -> Sequence[str]:
    """The contestants: those that race, those that lost, those without a time."""
    racing = group.racing(history)
    out = [c for c in group.contestants if c not in racing]
    measured = [c for c in out if history.number(c)]
    return [*racing, *sorted(measured, key=history.time_s), *(c for c in out if c not in measured)]


def _contestant(group: Group, case: str, standing: Standing, history: History) -> StoredContestant:
    dropped = group.dropped.get(case)
    return StoredContestant(
        case=case,
        name=group.contestants[case],
        standing=standing.value,
        launches=history.number(case),
        contended=history.contended(case),
        time_s=history.time_s(case) if history.number(case) else None,
        behind=_behind(group, case, history),
        why=history.lost(case)
        or (f"slower than {group.contestants[dropped.leader]}" if dropped else None),
    )


def _behind(group: Group, case: str, history: History) -> float | None:
    """How much longer a contestant takes than the leader, in launches of both."""
    leader = next(iter(group.racing(history)), case)
    if leader == case:
        return None
    differences = history.paired(leader, case)
    return math.expm1(statistics.median(differences)) if differences.size else None
