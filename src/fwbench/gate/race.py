"""Races: the fastest contestants at the same work, found with as few launches as that takes.

After each launch clear losers are dropped, and contestants that are too close to matter are called
a tie. The verdict of a group is wrong with a probability of at most 1 %, however often it was
evaluated, and whichever contestants led in between:

* The fastest contestant of all is wrongly dropped only if evidence says that it is slower than one
  of the other k - 1. Each of these comparisons has half a per cent divided by k - 1 (Bonferroni).
* A tie is wrong only if one of its k (k - 1) / 2 pairs differs by the threshold. Each has the other
  half per cent divided by that number; both directions must be excluded, and at most one of them
  can be wrong.

A pair is a launch of both contestants. Evidence is that of
:func:`fwbench.gate.sequential.evidence_of_share`, valid after every launch: contestants do
different work, so their differences may have any shape. It takes 16 pairs or more that all agree,
and eleven where one takes more than twice as long in all of them. Launches must be
independent: one whose own launches are slow for a stretch of more than ten may lose wrongly.

Beside busy processes launches say who is faster there: two threads that wait for each other lose to
one that need not, which they beat on a quiet machine. So a group is undecided where a contestant
behind the leader had to share its processors, as a row of a session is.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from fwbench.gate.budget import Budget, History
from fwbench.gate.sequential import (
    FARTHEST,
    Bools,
    Floats,
    Sequential,
    evidence_of_share,
    until_decided,
)
from fwbench.records.session_facts import StoredContestant, StoredGroup, StoredRace

#: The probability that the verdict of a group is wrong: half for its winner, half for its tie.
LEVEL = 0.01

#: A contestant is slower where it is behind by this part of the threshold in more than this share
#: of launches. Signs alone are fair for launches of the same work, and these do different work: one
#: that has a second speed in 45 % of its launches is behind in more than half of them, and its
#: median is the same.
_MARGIN, _MOST = 0.5, 2 / 3

#: Parts of a comparison's level: for evidence of signs, and for contestants that fall far behind.
_SIGNS, _FAR = 0.75, 0.25

#: A contestant is slower, too, where it takes longer by this factor in more than half of launches.
#: One with the same median does so in less than half of them, however slow its second speed is.
_FAR_FACTOR = 2.0

#: A contestant that is slower by a little less than the threshold can hardly be shown to tie, nor
#: to be slower by the threshold. From this part of it on it has lost once it is slower for certain;
#: it is launched on while others are open.
_CLOSE = 2 / 3


class GroupVerdict(StrEnum):
    """The result of a group."""

    FASTEST = "fastest"
    TIE = "tie"
    UNDECIDED = "undecided"


class Standing(StrEnum):
    """The result of a contestant."""

    FASTEST = "fastest"
    TIED = "tied"
    OPEN = "open"
    SLOWER = "slower"
    LOST = "lost"


@dataclass(frozen=True)
class RaceTest(Sequential):
    """The test of two contestants, which takes evidence from launches that are far slower, too."""

    margin: float = 0.0

    def proves(self, differences: Floats) -> Bools:
        """True if the differences have shown that a contestant is slower, by number of pairs."""
        is_behind = differences > _MARGIN * self.threshold
        signs = evidence_of_share(is_behind, _MOST) >= self.needed - math.log(_SIGNS)
        is_far = differences > math.log(_FAR_FACTOR)
        return signs | (evidence_of_share(is_far) >= self.needed - math.log(_FAR))

    def excludes(self, differences: Floats, change: float) -> Bools:
        """True if a median difference of this or more is excluded, in both directions."""
        is_less = evidence_of_share(differences < change) >= self.needed_to_exclude
        return is_less & (evidence_of_share(differences > -change) >= self.needed_to_exclude)

    def is_tie(self, differences: Floats) -> bool:
        """True if two contestants differ by less than the threshold for certain."""
        return bool(differences.size and self.excludes(differences, self.threshold)[-1])

    def more_launches(self, differences: Floats) -> float | None:
        """The number of further pairs like these that would decide, in half of all cases.

        Returns:
            Infinite if more than :data:`FARTHEST`; None with too few pairs to know it.
        """
        if differences.size < 2:  # noqa: PLR2004 (nothing is known of their spread)
            return None

        def decided(future: Floats) -> Bools:
            medians = np.median(future, axis=1)[:, None]
            lost = self.proves(np.where(medians < 0, -1.0, 1.0) * future)
            tied = self.excludes(future, self.threshold)
            return np.where(np.abs(medians) >= _CLOSE * self.threshold, lost | tied, tied)

        return until_decided(differences, decided)


@dataclass(frozen=True)
class Dropped:
    """The reason why a contestant is not launched any more."""

    leader: str
    pairs: int


@dataclass
class RaceGroup:
    """Contestants that do the same work."""

    title: str
    contestants: Mapping[str, str]
    #: The smallest difference that matters, as a share.
    threshold: float
    dropped: dict[str, Dropped] = field(default_factory=dict)

    def test(self, part: float = 1.0) -> RaceTest:
        """The test of two contestants, with part of the threshold."""
        number = len(self.contestants)
        return RaceTest(
            math.log1p(part * self.threshold),
            needed=math.log(2 * (number - 1) / LEVEL),
            needed_to_exclude=math.log(number * (number - 1) / LEVEL),
        )

    def racing(self, history: History) -> list[str]:
        """The contestants that are neither dropped nor lost, the present leader first."""
        left = [c for c in self.contestants if c not in self.dropped and not history.lost(c)]
        return sorted(left, key=history.time_s)

    def drop_losers(self, history: History) -> None:
        """Drop the contestants that are shown to be slower than the leader."""
        # A contestant whose work turned out to be wrong has beaten no other one.
        self.dropped = {c: why for c, why in self.dropped.items() if not history.lost(why.leader)}
        leader, *others = self.racing(history) or [""]
        for other in others:
            differences = history.paired(leader, other)
            if self.test().is_slower(differences):
                self.dropped[other] = Dropped(leader, differences.size)

    def rivals(self, history: History) -> dict[str, Standing]:
        """The standings of the contestants behind the leader: tied, slower or open."""
        leader, *others = self.racing(history) or [""]
        return {other: self._standing(history.paired(leader, other)) for other in others}

    def _standing(self, differences: Floats) -> Standing:
        if self.test().is_tie(differences):
            return Standing.TIED
        return Standing.SLOWER if self.test(_CLOSE).is_slower(differences) else Standing.OPEN

    def open(self, history: History) -> list[str]:
        """The contestants that neither lost to the leader nor tie with it."""
        return [c for c, standing in self.rivals(history).items() if standing is Standing.OPEN]

    def disturbed(self, history: History) -> list[str]:
        """The contestants behind the leader that may be faster than they seem.

        They had to share their processors in half of their launches or more.
        """
        leader = next(iter(self.racing(history)), None)
        return [
            contestant
            for contestant in self.contestants
            if contestant != leader
            and not history.lost(contestant)
            and 2 * history.contended(contestant) >= history.number(contestant)
        ]

    def verdict(self, history: History) -> GroupVerdict:
        """The verdict by now."""
        racing, standings = self.racing(history), {*self.rivals(history).values()}
        if not racing or Standing.OPEN in standings or self.disturbed(history):
            return GroupVerdict.UNDECIDED
        if Standing.TIED in standings:
            return GroupVerdict.TIE
        return GroupVerdict.FASTEST if standings or self.dropped else GroupVerdict.UNDECIDED

    def standings(self, history: History) -> dict[str, Standing]:
        """The standing of each contestant by now."""
        rivals, disturbed = self.rivals(history), self.disturbed(history)
        leading = _LEADING[self.verdict(history)]
        return {
            contestant: (
                Standing.LOST
                if history.lost(contestant)
                else Standing.OPEN
                if contestant in disturbed
                else Standing.SLOWER
                if contestant in self.dropped
                else rivals.get(contestant, leading)
            )
            for contestant in self.contestants
        }

    def more_launches(self, history: History) -> float | None:
        """The number of further launches that would decide the group, as a rule.

        Returns:
            Infinite if more than :data:`FARTHEST`; None with too few pairs to know it.
        """
        leader = self.racing(history)[0]
        numbers = [
            self.test().more_launches(history.paired(leader, other)) for other in self.open(history)
        ]
        known = [number for number in numbers if number is not None]
        return max(known) if known and len(known) == len(numbers) else None


#: The standing of the leader of a group.
_LEADING = {
    GroupVerdict.FASTEST: Standing.FASTEST,
    GroupVerdict.TIE: Standing.TIED,
    GroupVerdict.UNDECIDED: Standing.OPEN,
}

#: Puts the cases of a history into groups.
Grouping = Callable[[History], Sequence[RaceGroup]]


@dataclass
class Race:
    """Launches all cases ``at_least`` times, then those of open groups that have not lost."""

    grouping: Grouping
    budget: Budget
    at_least: int = 1
    groups: Sequence[RaceGroup] = field(default=(), init=False)
    launches: int | None = field(default=None, init=False)

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """The contestants of the open groups that there is time for, the cheapest groups first."""
        self.budget.start()
        if history.launches < self.at_least:
            return cases
        self.drop_losers(history)
        racing = [group.racing(history) for group in self.groups if group.open(history)]
        racing.sort(key=history.cost_s)
        return self.budget.affordable(racing, history)

    def drop_losers(self, history: History) -> None:
        """Group the cases, unless they are, and drop the clear losers of each group."""
        self.groups = self.groups or self.grouping(history)
        for group in self.groups:
            group.drop_losers(history)


def race_facts(race: Race, history: History) -> StoredRace:
    """The verdicts of a race, for the record of its session."""
    return StoredRace(level=LEVEL, groups=[_group_facts(group, history) for group in race.groups])


def _group_facts(group: RaceGroup, history: History) -> StoredGroup:
    verdict = group.verdict(history)
    is_open = verdict is GroupVerdict.UNDECIDED and group.open(history)
    more = group.more_launches(history) if is_open and not group.disturbed(history) else None
    known = int(more) if more is not None and math.isfinite(more) else None
    racing, standings = group.racing(history), group.standings(history)
    return StoredGroup(
        title=group.title,
        verdict=verdict.value,
        threshold=group.threshold,
        contestants=[
            _contestant_facts(group, c, standings[c], history) for c in _ordered(group, history)
        ],
        more_launches=known,
        more_s=None if known is None else known * history.cost_s(racing),
        more_than=FARTHEST if more == math.inf else None,
    )


def _ordered(group: RaceGroup, history: History) -> Sequence[str]:
    """The contestants: those that race, those that lost, those without a time."""
    racing = group.racing(history)
    out = [c for c in group.contestants if c not in racing]
    measured = [c for c in out if history.number(c)]
    return [*racing, *sorted(measured, key=history.time_s), *(c for c in out if c not in measured)]


def _contestant_facts(
    group: RaceGroup, case: str, standing: Standing, history: History
) -> StoredContestant:
    dropped, is_beaten = group.dropped.get(case), standing is Standing.SLOWER
    return StoredContestant(
        case=case,
        name=group.contestants[case],
        standing=standing.value,
        launches=history.number(case),
        contended=history.contended(case),
        time_s=history.time_s(case) if history.number(case) else None,
        behind=_behind(group, case, history),
        why=history.lost(case)
        or (f"slower than {group.contestants[dropped.leader]}" if is_beaten and dropped else None),
        disturbed=case in group.disturbed(history),
    )


def _behind(group: RaceGroup, case: str, history: History) -> float | None:
    """Median extra time of a contestant over the leader, in launches of both."""
    leader = next(iter(group.racing(history)), case)
    if leader == case:
        return None
    differences = history.paired(leader, case)
    return math.expm1(statistics.median(differences)) if differences.size else None
