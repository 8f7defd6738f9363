"""Geometric means of times against the fastest, over the cases that all contestants share."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.records.units import count
from fwbench.report.ranking.condition import is_contended
from fwbench.report.ranking.contests import Contest
from fwbench.report.ranking.times import named

#: A contestant with a smaller share of the cases of the one that has most is listed and not
#: ranked: it would shrink the set of cases that all share.
_SHARE_TO_BE_RANKED = 0.75

#: So many are ranked at least, however few cases they share.
_RANKED_AT_LEAST = 2

#: Seconds of a call by contestant.
Times = Mapping[str, float]


@dataclass(frozen=True)
class Mean:
    """How many times as long as the fastest a contestant takes, as geometric means.

    Attributes:
        name: of the contestant.
        all_sizes: over all shared cases: what a call costs.
        largest: over those of the largest size of each work: what the arithmetic costs; None if
            none of these is shared.
    """

    name: str
    all_sizes: float
    largest: float | None


@dataclass(frozen=True)
class Unranked:
    """A contestant that lacks cases.

    Attributes:
        name: of the contestant.
        cases: how many it has.
        most: how many the contestant with most has.
        contended: how many more it has that were contended.
        unequal: how many more it has that did not train as the others.
    """

    name: str
    cases: int
    most: int
    contended: int
    unequal: int

    @property
    def text(self) -> str:
        """How many cases it has, in words."""
        left_out = {"contended": self.contended, "unequal": self.unequal}
        said = "".join(f", and {number} {why}" for why, number in left_out.items() if number)
        return f"not ranked: {self.cases} of {count(self.most, 'case')}{said}"


@dataclass(frozen=True)
class Ranking:
    """The contestants of one kind of workload.

    Attributes:
        title: the kind, with the device where there are several.
        cases: how many cases all ranked contestants share.
        largest: how many of these are of the largest size of their work.
        means: of the ranked contestants, the fastest first; none if they do not share a case.
        unranked: the other contestants, those with most cases first.
        entered: how many cases there are, of all contestants.
        contended: how many of these were contended.
    """

    title: str
    cases: int
    largest: int
    means: Sequence[Mean]
    unranked: Sequence[Unranked]
    entered: int
    contended: int

    @property
    def why_empty(self) -> str:
        """The reason why nobody is ranked."""
        contended = f"{self.contended} of {count(self.entered, 'case')} contended"
        names = ", ".join(each.name for each in self.unranked)
        return f"{names} do not share a case to be ranked by ({contended})"


def rankings(contests: Iterable[Contest]) -> list[Ranking]:
    """A ranking for each kind of workload and each device; contended cases take no part."""
    by_kind: dict[tuple[str, str], list[Contest]] = {}
    for contest in contests:
        by_kind.setdefault(contest.kind, []).append(contest)
    several = len({device for _, device in by_kind}) > 1
    return [
        _ranking(named(f"{kind}, {device}" if several else kind, device), group)
        for (kind, device), group in by_kind.items()
    ]


def _ranking(title: str, contests: Sequence[Contest]) -> Ranking:
    contested = [contest for contest in contests if len(contest.ranked) > 1]
    cases = Counter(timed.name for contest in contested for timed in contest.ranked)
    names = _ranked(cases)
    shared = [contest for contest in contested if _times(contest).keys() >= {*names}]
    largest = _of_largest_size(shared, contests)
    ratios, at_largest = _ratios(shared, names), _ratios(largest, names)
    means = [
        Mean(name, statistics.geometric_mean(ratios[name]), _mean(at_largest[name]))
        for name in names
        if shared
    ]
    means.sort(key=lambda mean: mean.all_sizes)
    unranked = _unranked(contests, cases, {mean.name for mean in means})
    facts = [timed.facts for contest in contests for timed in contest.entrants]
    contended = sum(map(is_contended, facts))
    return Ranking(title, len(shared), len(largest), means, unranked, len(facts), contended)


def _times(contest: Contest) -> Times:
    return {timed.name: timed.time_s for timed in contest.ranked}


def _ranked(cases: Counter[str]) -> list[str]:
    """The contestants that have enough cases to be compared over those that all share."""
    most = max(cases.values(), default=0)
    enough = [name for name, number in cases.items() if number >= _SHARE_TO_BE_RANKED * most]
    if len(enough) >= _RANKED_AT_LEAST:
        return enough
    return [name for name, _ in cases.most_common(_RANKED_AT_LEAST)]


def _of_largest_size(shared: Iterable[Contest], contests: Iterable[Contest]) -> list[Contest]:
    sizes: dict[tuple[Any, ...], int] = {}
    for contest in contests:
        sizes[contest.family] = max(contest.size, sizes.get(contest.family, 0))
    return [contest for contest in shared if contest.size == sizes[contest.family]]


def _ratios(contests: Iterable[Contest], names: Collection[str]) -> dict[str, list[float]]:
    """By name: its time over the fastest of the ranked, in each of the contests."""
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for contest in contests:
        times = _times(contest)
        fastest_s = min(times[name] for name in names)
        for name in names:
            ratios[name].append(times[name] / fastest_s)
    return ratios


def _mean(ratios: Sequence[float]) -> float | None:
    return statistics.geometric_mean(ratios) if ratios else None


def _unranked(
    contests: Iterable[Contest], cases: Counter[str], ranked: Collection[str]
) -> list[Unranked]:
    entrants = [timed for contest in contests for timed in contest.entrants]
    entered = Counter(timed.name for timed in entrants)
    contended = Counter(timed.name for timed in entrants if is_contended(timed.facts))
    unequal = Counter(timed.name for timed in entrants if timed.facts.unequal is not None)
    most = max(cases.values(), default=0)
    return [
        Unranked(name, cases[name], most, contended[name], unequal[name])
        for name, _ in entered.most_common()
        if name not in ranked
    ]
