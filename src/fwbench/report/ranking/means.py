"""Rankings over many contests: which framework is fastest how often, and geometric means.

A call on a GPU is over for its user when the result exists: after launch, kernel and wait. The GPU
itself may be busy for a small part of that only, and then a ranking says who launches fastest:
rankings of GPUs name the time that they use.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.frameworks.gpus import DEVICE_CLOCKS
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.records.units import count
from fwbench.report.ranking.condition import is_contended
from fwbench.report.ranking.contests import Contest, by_kind, fastest

#: Frameworks whose times differ by less are too close to call. Launches of the same case, minutes
#: apart, differ by 3 to 5 % (docs/comparing.md), so that one launch cannot tell them apart.
TOO_CLOSE = 1.05

#: A contestant with a smaller share of the cases of the one that has most is listed and not
#: ranked: it would shrink the set of cases that all share.
_SHARE_TO_BE_RANKED = 0.75

#: At least this many contestants are ranked, however few cases they share.
_RANKED_AT_LEAST = 2

COMPLETION = "completion time"


# The fastest framework, in words


@dataclass(frozen=True)
class Answer:
    """The fastest frameworks, for one kind of workload on one device.

    Attributes:
        kind: of workload: ``operations, forward``, ``training steps``.
        device: where it ran.
        fastest: number of contests that a framework wins, the one with most first.
        too_close: number of contests whose two fastest frameworks are too close to call.
    """

    kind: str
    device: str
    fastest: Mapping[str, int]
    too_close: int

    @property
    def contests(self) -> int:
        """Number of contests that were decided or too close to call."""
        return sum(self.fastest.values()) + self.too_close

    @property
    def text(self) -> str:
        """The answer as a clause: ``torch for 21 of 33, numpy for 10; 2 too close to call``."""
        parts: list[str] = []
        for name, number in self.fastest.items():
            of = "" if parts else f" of {self.contests}"
            parts.append(f"{name} for {number}{of}")
        close = f"{self.too_close} too close to call" if self.too_close else ""
        return "; ".join(filter(None, [", ".join(parts), close]))


def answers(contests: Iterable[Contest]) -> list[Answer]:
    """An answer for each kind of workload and each device.

    A framework is as fast as its fastest execution. Contests of a single framework are left out,
    and so are contended and unequal cases.
    """
    rivals = (c for c in contests if len({case.facts.framework for case in c.ranked}) > 1)
    return [_answer(*key, group) for key, group in by_kind(rivals).items()]


def winner(contest: Contest) -> Measurement | None:
    """The fastest case of a contest; None if another framework is too close to it to call."""
    by_framework = fastest(contest.ranked, lambda case: case.facts.framework)
    first, *others = sorted(by_framework.values(), key=lambda case: case.median_s)
    close = bool(others) and others[0].median_s < TOO_CLOSE * first.median_s
    return None if close else first


def _answer(kind: str, device: str, contests: Sequence[Contest]) -> Answer:
    winners = [winner(contest) for contest in contests]
    wins = Counter(case.facts.framework for case in winners if case is not None)
    return Answer(kind, device, dict(wins.most_common()), winners.count(None))


# Geometric means


@dataclass(frozen=True)
class Mean:
    """The times of a contestant over those of the fastest, as geometric means.

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
        cases: number of cases that it has.
        most: number of cases of the contestant with most.
        contended: number of further cases that were contended.
        unequal: number of further cases that did not train as the others.
    """

    name: str
    cases: int
    most: int
    contended: int
    unequal: int

    @property
    def text(self) -> str:
        """The number of its cases, in words."""
        left_out = {"contended": self.contended, "unequal": self.unequal}
        others = "".join(f", and {number} {why}" for why, number in left_out.items() if number)
        return f"not ranked: {self.cases} of {count(self.most, 'case')}{others}"


@dataclass(frozen=True)
class Ranking:
    """The contestants of one kind of workload.

    Attributes:
        title: the kind, with the device where there are several.
        cases: number of cases that all ranked contestants share.
        largest: number of these that are of the largest size of their work.
        means: of the ranked contestants, the fastest first; none if they do not share a case.
        unranked: the other contestants, those with most cases first.
        entered: number of cases of all contestants.
        contended: number of these that were contended.
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
        """The reason why no contestant is ranked."""
        contended = f"{self.contended} of {count(self.entered, 'case')} contended"
        names = ", ".join(contestant.name for contestant in self.unranked)
        return f"{names} do not share a case to be ranked by ({contended})"


def rankings(contests: Iterable[Contest]) -> list[Ranking]:
    """A ranking for each kind of workload and each device; contended cases take no part."""
    kinds = by_kind(contests)
    several = len({device for _, device in kinds}) > 1
    return [
        _ranking(named(f"{kind}, {device}" if several else kind, device), group)
        for (kind, device), group in kinds.items()
    ]


def _ranking(title: str, contests: Sequence[Contest]) -> Ranking:
    contested = [contest for contest in contests if len(contest.ranked) > 1]
    cases = Counter(case.contestant for contest in contested for case in contest.ranked)
    names = _ranked(cases)
    shared = [c for c in contested if {case.contestant for case in c.ranked} >= {*names}]
    largest = _of_largest_size(shared, contests)
    ratios, at_largest = _ratios(shared, names), _ratios(largest, names)
    means = [
        Mean(name, statistics.geometric_mean(ratios[name]), _mean(at_largest[name]))
        for name in names
        if shared
    ]
    means.sort(key=lambda mean: mean.all_sizes)
    unranked = _unranked(contests, cases, {mean.name for mean in means})
    facts = [case.facts for contest in contests for case in contest.entrants]
    contended = sum(map(is_contended, facts))
    return Ranking(title, len(shared), len(largest), means, unranked, len(facts), contended)


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
        for case, ratio in contest.ratios(lambda case: case.contestant in ratios):
            ratios[case.contestant].append(ratio)
    return ratios


def _mean(ratios: Sequence[float]) -> float | None:
    return statistics.geometric_mean(ratios) if ratios else None


def _unranked(
    contests: Iterable[Contest], cases: Counter[str], ranked: Collection[str]
) -> list[Unranked]:
    entrants = [case for contest in contests for case in contest.entrants]
    entered = Counter(case.contestant for case in entrants)
    contended = Counter(case.contestant for case in entrants if is_contended(case.facts))
    unequal = Counter(case.contestant for case in entrants if case.facts.unequal is not None)
    most = max(cases.values(), default=0)
    return [
        Unranked(name, cases[name], most, contended[name], unequal[name])
        for name, _ in entered.most_common()
        if name not in ranked
    ]


# The time that ranks


def has_several(device: str) -> bool:
    """True if the time of a call on a device may mean more than one thing.

    Args:
        device: ``cpu`` or ``gpu:N``.
    """
    return device.startswith("gpu")


def named(text: str, device: str) -> str:
    """A text of times, with the name of the time in brackets: ``operations (completion time)``.

    Args:
        device: that the times were measured on; on a CPU the text stays as it is.
    """
    return f"{text} ({COMPLETION})" if has_several(device) else text


def notes(cases: Sequence[CaseFacts]) -> list[str]:
    """For each GPU, which time ranks its cases, and how much of it the GPU needed."""
    by_device: dict[str, list[CaseFacts]] = defaultdict(list)
    for facts in cases:
        if has_several(facts.device):
            by_device[facts.device].append(facts)
    return [
        f"cases on {device} are ranked by {COMPLETION}, until the result exists: launch, kernel "
        f"and wait{_busy(on_device)}"
        for device, on_device in sorted(by_device.items())
    ]


def _busy(cases: Sequence[CaseFacts]) -> str:
    """The share of the time that the device itself needed, where its own clock was read."""
    shares = [
        facts.device_s / facts.completion_s
        for facts in cases
        if facts.device_clock in DEVICE_CLOCKS and facts.device_s and facts.completion_s
    ]
    if not shares:
        return ""
    least, typical, most = (
        f"{min(1.0, of(shares)):.0%}".replace("%", " %") for of in (min, statistics.median, max)
    )
    spread = f", {least} to {most}" if len(shares) > 1 else ""
    cases_of = count(len(shares), "case")
    return f"; the GPU itself needed {typical} of it (median of {cases_of}{spread})"
