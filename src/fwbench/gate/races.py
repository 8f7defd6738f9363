"""Races: who is fastest at the same work, decided with as few launches as that takes.

Launches go on; after each of them clear losers are dropped, and contestants that are too close to
matter are called a tie. What a group's verdict says is wrong with a probability of at most 1 %,
however often it was looked at, and whichever contestants led in between:

* The fastest contestant of all is wrongly dropped only if evidence says that it is slower than one
  of the other k - 1. Each of these comparisons has half a per cent divided by k - 1 (Bonferroni).
* A tie is wrong only if one of its k (k - 1) / 2 pairs differs by the threshold. Each has the other
  half per cent divided by that number; both directions must be excluded (two one-sided tests,
  Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987), and at most one of them
  can be wrong.

The evidence is that of :mod:`fwbench.gate.paired`, in which a pair is a launch of both contestants,
whose cases ran in random order: exact whatever the machine does, and valid after every launch. It
takes ten pairs or so that all agree. Contestants three times as slow do not wait for these,
see :func:`falls_behind`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fwbench.gate import paired
from fwbench.gate.allocation import Budget
from fwbench.gate.history import History
from fwbench.gate.paired import Floats

Bools = NDArray[np.bool_]

#: The probability that the verdict of a group is wrong: half for its winner, half for its tie.
LEVEL = 0.01

#: Parts of a comparison's level: for evidence of signs, and for contestants that fall far behind.
_SIGNS, _FAR = 0.75, 0.25

#: Launches of equal contestants differ by more than this factor in at most this share of pairs.
_FAR_FACTOR = 3.0
_FAR_SHARE = 0.1

#: A contestant that is slower by a little less than the threshold can hardly be shown to tie, nor
#: to be slower by the threshold. From this part of it on it has lost once it is slower for certain;
#: it is launched on while others are open.
_CLOSE = 2 / 3

#: What a gambler keeps of the money when betting that a contestant falls far behind.
_KEPT = 0.1


class Outcome(StrEnum):
    """What a race says of a group."""

    FASTEST = "fastest"
    TIE = "tie"
    UNDECIDED = "undecided"


class Standing(StrEnum):
    """What a race says of a contestant."""

    FASTEST = "fastest"
    TIED = "tied"
    OPEN = "open"
    SLOWER = "slower"
    LOST = "lost"


@dataclass(frozen=True)
class Dropped:
    """Why a contestant is not launched any more.

    Attributes:
        leader: the contestant that is faster.
        pairs: launches of both that showed it.
    """

    leader: str
    pairs: int


@dataclass
class Group:
    """Contestants that do the same work.

    Attributes:
        title: the work, in words.
        contestants: their names to show, by case.
        threshold: the smallest difference that matters, as a share.
        dropped: the clear losers.
    """

    title: str
    contestants: Mapping[str, str]
    threshold: float
    dropped: dict[str, Dropped] = field(default_factory=dict)

    @property
    def needed(self) -> float:
        """The logarithm of the evidence that drops a contestant."""
        return math.log(2 * (len(self.contestants) - 1) / LEVEL)

    @property
    def needed_to_tie(self) -> float:
        """The logarithm of the evidence that excludes one direction of a difference."""
        number = len(self.contestants)
        return math.log(number * (number - 1) / LEVEL)

    def racing(self, history: History) -> list[str]:
        """The contestants that are neither dropped nor lost, the present leader first."""
        left = [c for c in self.contestants if c not in self.dropped and not history.lost(c)]
        return sorted(left, key=history.time_s)

    def look(self, history: History) -> None:
        """Drop those that are shown to be slower than the leader."""
        # Nothing is known of who lost to a contestant whose work turned out to be wrong.
        self.dropped = {c: why for c, why in self.dropped.items() if not history.lost(why.leader)}
        leader, *others = self.racing(history) or [""]
        for other in others:
            differences = history.paired(leader, other)
            if is_slower(differences, self.threshold, self.needed):
                self.dropped[other] = Dropped(leader, differences.size)

    def rivals(self, history: History) -> dict[str, Standing]:
        """What is known of those that still race, the leader apart: tied, slower or open."""
        leader, *others = self.racing(history) or [""]
        return {other: self._against(history.paired(leader, other)) for other in others}

    def _against(self, differences: Floats) -> Standing:
        """What pairs with the leader say of a contestant."""
        if is_tie(differences, self.threshold, self.needed_to_tie):
            return Standing.TIED
        if is_slower(differences, _CLOSE * self.threshold, self.needed):
            return Standing.SLOWER
        return Standing.OPEN

    def open(self, history: History) -> list[str]:
        """The contestants that neither lost to the leader nor tie with it."""
        return [c for c, known in self.rivals(history).items() if known is Standing.OPEN]

    def outcome(self, history: History) -> Outcome:
        """What is known of the group by now."""
        racing, known = self.racing(history), {*self.rivals(history).values()}
        if not racing or Standing.OPEN in known:
            return Outcome.UNDECIDED
        if Standing.TIED in known:
            return Outcome.TIE
        return Outcome.FASTEST if known or self.dropped else Outcome.UNDECIDED

    def standings(self, history: History) -> dict[str, Standing]:
        """What is known of each contestant by now."""
        outcome, rivals = self.outcome(history), self.rivals(history)
        leading = _LEADING[outcome]
        return {
            contestant: (
                Standing.LOST
                if history.lost(contestant)
                else Standing.SLOWER
                if contestant in self.dropped
                else rivals.get(contestant, leading)
            )
            for contestant in self.contestants
        }

    def more(self, history: History) -> float | None:
        """How many more launches would decide the group, as a rule.

        Returns:
            Infinite if more than :data:`FARTHEST`; None with too few pairs to know it.
        """
        leader = self.racing(history)[0]
        each = [
            _more(history.paired(leader, other), self.threshold, self.needed, self.needed_to_tie)
            for other in self.open(history)
        ]
        known = [number for number in each if number is not None]
        return max(known) if known and len(known) == len(each) else None


#: What is known of the leader of a group.
_LEADING = {
    Outcome.FASTEST: Standing.FASTEST,
    Outcome.TIE: Standing.TIED,
    Outcome.UNDECIDED: Standing.OPEN,
}


def is_slower(differences: Floats, threshold: float, needed: float) -> bool:
    """Whether a contestant has lost to another: slower for certain, and by enough to matter.

    Args:
        differences: logarithms of ratios of its times to the other's.
        threshold: the smallest median difference that matters, as a share.
        needed: the logarithm of the evidence that it takes.
    """
    if not differences.size or np.median(differences) < math.log1p(threshold):
        return False
    return bool(_lost(differences, needed)[-1])


def _lost(differences: Floats, needed: float) -> Bools:
    """For each number of pairs, whether they have shown that a contestant is slower."""
    signs = paired.evidence(differences) >= needed - math.log(_SIGNS)
    return signs | (falls_behind(differences) >= needed - math.log(_FAR))


def falls_behind(differences: Floats) -> Floats:
    """The logarithm of the evidence that a contestant is far behind, which four launches can show.

    No test of signs can tell so early: five signs agree by chance in one case of 32. This one takes
    an assumption on sizes instead: of contestants that are equally fast, one takes more than three
    times as long as the other in at most one launch of ten, whatever the launches before were like.
    (Noise of shared machines stays below that: a second speed, 1.4 times; slow launches, up to
    twice; two processors with a load of 15 to 20, three times in one launch of twenty.) So who bets
    on it at 10 to 1 makes no money in the long run, and again evidence is the money that was made:
    it grows ninefold with each launch in which it was three times as slow.

    Args:
        differences: logarithms of ratios of its times to the other's, along the last axis.

    Returns:
        For each number of pairs, the largest so far; of the same shape.
    """
    far = differences > math.log(_FAR_FACTOR)
    bets = np.log(np.where(far, _KEPT + (1 - _KEPT) / _FAR_SHARE, _KEPT))
    return cast("Floats", np.maximum.accumulate(np.cumsum(bets, axis=-1), axis=-1))


def is_tie(differences: Floats, threshold: float, needed: float) -> bool:
    """Whether two contestants differ by less than the threshold for certain.

    Args:
        differences: logarithms of ratios of their times.
        threshold: the smallest difference that matters, as a share.
        needed: the logarithm of the evidence that excludes one direction.
    """
    limit = math.log1p(threshold)
    return bool(
        differences.size
        and paired.shows(limit - differences, needed)
        and paired.shows(limit + differences, needed)
    )


#: Launches that are simulated, at most, to find how many a decision takes.
FARTHEST = 200

#: Continuations that are simulated; half of them are to be decided.
_SIMULATED = 50


def _more(differences: Floats, threshold: float, needed: float, to_tie: float) -> float | None:
    """How many more pairs like these would decide, in half of all cases.

    Args:
        differences: logarithms of ratios, of the pairs so far.
        threshold: the smallest difference that matters, as a share.
        needed: the logarithm of the evidence that drops a contestant.
        to_tie: the logarithm of the evidence that excludes one direction.

    Returns:
        Infinite if more than :data:`FARTHEST`; None with too few pairs to know it.
    """
    if differences.size < 2:  # noqa: PLR2004 (nothing is known of their spread)
        return None
    draw = np.random.default_rng(differences.size)
    drawn = draw.choice(differences, (_SIMULATED, FARTHEST))
    future = np.concatenate([np.tile(differences, (_SIMULATED, 1)), drawn], axis=1)
    limit, medians = math.log1p(threshold), np.median(future, axis=1)[:, None]
    lost = _lost(np.where(medians < 0, -1.0, 1.0) * future, needed)
    tied = (paired.evidence(limit - future) >= to_tie) & (paired.evidence(limit + future) >= to_tie)
    decided = np.where(np.abs(medians) >= _CLOSE * limit, lost | tied, tied)
    if np.mean(decided[:, -1]) < 1 / 2:
        return math.inf
    first = np.where(decided[:, -1], np.argmax(decided, axis=1) + 1, future.shape[1])
    return max(1, int(np.median(first)) - differences.size)


#: Puts the cases of a history into groups.
Grouping = Callable[[History], Sequence[Group]]


@dataclass
class Race:
    """Launches all cases ``at_least`` times, then those of open groups that have not lost.

    Attributes:
        grouping: of the cases; asked once, after the first launches.
        budget: of all launches.
        at_least: launches of every case, whatever the budget.
        groups: once there are any.
    """

    grouping: Grouping
    budget: Budget
    at_least: int = 1
    groups: Sequence[Group] = field(default=(), init=False)
    launches: int | None = field(default=None, init=False)

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """The contestants of the open groups that there is time for, the cheapest groups first."""
        self.budget.start()
        if history.launches < self.at_least:
            return cases
        self.look(history)
        racing = [group.racing(history) for group in self.groups if group.open(history)]
        racing.sort(key=history.cost_s)
        return self.budget.affordable(racing, history)

    def look(self, history: History) -> None:
        """Draw what conclusions the launches so far allow."""
        self.groups = self.groups or self.grouping(history)
        for group in self.groups:
            group.look(history)
