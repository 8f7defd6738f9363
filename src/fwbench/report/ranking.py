"""Contests: cases that did the same work in the same way, with the fastest of them.

A view costs nothing and a copy moves its data; products in TF32 are not products in float32;
replicas that do not wait for each other train otherwise than one worker; two replicas have less to
exchange than four. Where cases of the same work differ in this, each kind is a contest of its own.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from fwbench.frameworks.gpus import DEVICE_CLOCKS
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, group_by, repeats
from fwbench.records.units import count
from fwbench.report.condition import full_bits, is_contended, is_exchange, is_unranked, reduced_bits
from fwbench.terms.toggles import TOGGLES

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Contest:
    """Cases that did the same work in the same way.

    Attributes:
        label: their difference from others that did the same work: `` (view)``, or empty.
    """

    entrants: Sequence[Measurement]
    label: str

    @property
    def facts(self) -> CaseFacts:
        """Facts of the first entrant; workload, device, dtype and size are those of all."""
        return self.entrants[0].facts

    @property
    def title(self) -> str:
        """The work, in words."""
        facts = self.facts
        work = (facts.workload, facts.device, facts.direction, facts.dtype)
        return " ".join(map(str, (*work, facts.shape or facts.size))) + self.label

    @property
    def kind(self) -> tuple[str, str]:
        """The kind of workload with the label, and the device: means are taken within a kind."""
        return f"{kind(self.facts)}{self.label}", self.facts.device

    @property
    def family(self) -> tuple[Any, ...]:
        """Key of the same work in all sizes."""
        facts = self.facts
        return facts.workload, facts.device, facts.direction, facts.dtype, self.label

    @property
    def size(self) -> int:
        """The size of the inputs."""
        return self.facts.size

    @cached_property
    def ranked(self) -> list[Measurement]:
        """The cases that can be ranked.

        Contended cases are left out, exchanges over memory, and trainings that are unequal to
        others of the same work.
        """
        return [
            case
            for case in self.entrants
            if not is_unranked(case.facts) and case.facts.unequal is None
        ]

    def ratios(
        self, among: Callable[[Measurement], bool] = lambda _: True
    ) -> list[tuple[Measurement, float]]:
        """Ranked cases, each with its time over that of the fastest of them.

        Args:
            among: whether a ranked case takes part; by default each does.
        """
        cases = [case for case in self.ranked if among(case)]
        least_s = min((case.median_s for case in cases), default=1.0)
        return [(case, case.median_s / least_s) for case in cases]

    @cached_property
    def fastest_s(self) -> float:
        """The smallest time of a ranked case, in seconds; infinite without any."""
        return min((case.median_s for case in self.ranked), default=math.inf)


def contests(cases: Iterable[Measurement]) -> list[Contest]:
    """Contests of at least two cases; ``noop`` is left out, since it does no work."""
    return [contest for contest in works(cases) if len(contest.entrants) > 1]


def works(cases: Iterable[Measurement]) -> list[Contest]:
    """Contests, those of a single case among them; ``noop`` is left out, since it does no work."""
    working = (case for case in cases if case.facts.workload != "noop")
    groups = group_by(working, lambda case: work(case.facts))
    return [
        Contest(_distinct(entrants), label)
        for group in groups.values()
        for label, entrants in split(group, lambda case: case.facts).items()
    ]


def _distinct(entrants: Sequence[Measurement]) -> list[Measurement]:
    numbers = repeats(case.contestant for case in entrants)
    return [
        replace(case, repeat=number) if number > 1 else case
        for case, number in zip(entrants, numbers, strict=True)
    ]


def fastest(
    cases: Iterable[Measurement], key: Callable[[Measurement], Key]
) -> dict[Key, Measurement]:
    """The case with the smallest time of those with the same key, by key."""
    best: dict[Key, Measurement] = {}
    for case in cases:
        at = key(case)
        if at not in best or case.median_s < best[at].median_s:
            best[at] = case
    return best


def ratios_to_fastest(
    cases: Sequence[Measurement], key: Callable[[Measurement], Hashable]
) -> list[float | None]:
    """The time of each case over that of the fastest with the same key; None if not ranked."""
    best = fastest((case for case in cases if not is_unranked(case.facts)), key)
    return [
        None if is_unranked(case.facts) else case.median_s / best[key(case)].median_s
        for case in cases
    ]


@dataclass(frozen=True)
class Difference:
    """The fastest and the slowest ranked case of a contest, with the ratio of their times."""

    title: str
    fastest: Measurement
    slowest: Measurement

    @property
    def ratio(self) -> float:
        """The time of the slowest over that of the fastest."""
        return self.slowest.median_s / self.fastest.median_s


def differences(contests: Iterable[Contest]) -> list[Difference]:
    """The difference within each contest of at least two ranked cases, the largest first."""
    pairs = []
    for contest in contests:
        if len(contest.ranked) > 1:
            fast, *_, slow = sorted(contest.ranked, key=lambda case: case.median_s)
            pairs.append(Difference(contest.title, fast, slow))
    return sorted(pairs, key=lambda pair: -pair.ratio)


def work(facts: CaseFacts) -> tuple[Any, ...]:
    """Key of cases of the same work, including the toggles that change it."""
    toggles = facts.toggles or {}
    changing = (
        toggles.get(toggle.name, toggle.default)
        for toggle in TOGGLES.values()
        if toggle.changes_work
    )
    # Toggles of other packages' frameworks may be lists.
    return (*facts.work, facts.steps_per_epoch, *map(str, changing))


def split(items: Iterable[T], facts_of: Callable[[T], CaseFacts]) -> dict[str, list[T]]:
    """Items by their difference from others that did the same work: `` (view)``, `` (copy)``.

    Returns:
        All items under an empty label where cases of the same work do not differ.
    """
    cases = [(item, facts_of(item)) for item in items]
    by_work = group_by((facts for _, facts in cases), work)
    differing = [
        aspect
        for aspect in (_result, _precision, _agreement, _exchanging)
        if any(len({*map(aspect, same)}) > 1 for same in by_work.values())
    ]
    parts: dict[str, list[T]] = {}
    for item, facts in cases:
        label = f" ({', '.join(aspect(facts) for aspect in differing)})" if differing else ""
        parts.setdefault(label, []).append(item)
    return parts


def _result(facts: CaseFacts) -> str:
    if facts.result_is_view is None and facts.flops:
        return "copy"  # what is computed was not there before
    return {True: "view", False: "copy", None: "view or copy"}[facts.result_is_view]


def _precision(facts: CaseFacts) -> str:
    return f"{reduced_bits(facts) or full_bits(facts)} bits"


def _agreement(facts: CaseFacts) -> str:
    equal = facts.gang is None or facts.gang.equal_work is not False
    return "synchronous" if equal else "asynchronous"


def _exchanging(facts: CaseFacts) -> str:
    """The more replicas there are, the more they have to exchange."""
    if facts.gang is None or not is_exchange(facts):
        return "one process"
    return f"{facts.gang.replicas} replicas"


def kind(facts: CaseFacts) -> str:
    """The kind of workload of a case; means are taken over one kind only."""
    if facts.epochs:
        return "training loops"
    if facts.direction != "train":
        what = "operations" if facts.parameters is None else "networks"
        return f"{what}, {facts.direction}"
    return "loaders" if facts.checked_steps is None else "training steps"


def by_kind(contests: Iterable[Contest]) -> Mapping[tuple[str, str], Sequence[Contest]]:
    """Contests by the kind of their workload and their device."""
    return group_by(contests, lambda contest: contest.kind)


#: Frameworks whose times differ by less are too close to call. Launches of the same case, minutes
#: apart, differ by 3 to 5 % (docs/comparing.md), so that one launch cannot tell them apart.
TOO_CLOSE = 1.05

#: A contestant with a smaller share of the cases of the one that has most is listed and not
#: ranked: it would shrink the set of cases that all share.
_SHARE_TO_BE_RANKED = 0.75

#: At least this many contestants are ranked, however few cases they share.
_RANKED_AT_LEAST = 2

COMPLETION = "completion time"


@dataclass(frozen=True)
class Answer:
    """The fastest frameworks, for one kind of workload on one device.

    Attributes:
        kind: of workload: ``operations, forward``, ``training steps``.
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
            total = "" if parts else f" of {self.contests}"
            parts.append(f"{name} for {number}{total}")
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


@dataclass(frozen=True)
class Mean:
    """The times of a contestant over those of the fastest, as geometric means.

    Attributes:
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
    ratios, at_largest = (
        _ratios(part, _contestant, lambda case: case.contestant in names)
        for part in (shared, largest)
    )
    means = [
        Mean(name, statistics.geometric_mean(ratios[name]), _mean(at_largest.get(name)))
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


def _ratios(
    contests: Iterable[Contest],
    key: Callable[[Measurement], Key],
    among: Callable[[Measurement], bool] = lambda _: True,
) -> dict[Key, list[float]]:
    """By key: the times over those of the fastest, one for each of the contests."""
    ratios: dict[Key, list[float]] = defaultdict(list)
    for contest in contests:
        for case, ratio in contest.ratios(among):
            ratios[key(case)].append(ratio)
    return ratios


def _contestant(case: Measurement) -> str:
    return case.contestant


def _mean(ratios: Sequence[float] | None) -> float | None:
    return statistics.geometric_mean(ratios) if ratios else None


@dataclass(frozen=True)
class GroupMean:
    """Mean of a contestant over a group of works.

    Attributes:
        ratio: geometric mean of its times over those of the fastest; None if it is ranked in no
            contest.
        is_partial: whether it lacks some of the contests that others have.
        behind: its ratio over the smallest of those that lack none.
    """

    cases: Sequence[Measurement]
    ratio: float | None
    is_partial: bool
    behind: float

    @property
    def time_s(self) -> float:
        """Geometric mean of the times of its cases, in seconds."""
        return statistics.geometric_mean(case.median_s for case in self.cases)


def group_means(
    works: Sequence[Contest], key: Callable[[Measurement], Key]
) -> dict[Key, GroupMean]:
    """The mean of the cases with the same key, over contests of at least two ranked cases."""
    contests = [work for work in works if len(work.ranked) > 1]
    ratios = _ratios(contests, key)
    complete = (values for values in ratios.values() if len(values) >= len(contests))
    least = min(map(statistics.geometric_mean, complete), default=1.0)
    cases = group_by((case for work in works for case in work.entrants), key)
    means = {name: _mean(ratios.get(name)) for name in cases}
    return {
        name: GroupMean(
            cases[name], mean, len(ratios.get(name, ())) < len(contests), (mean or 0.0) / least
        )
        for name, mean in means.items()
    }


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
    on_gpu = (facts for facts in cases if has_several(facts.device))
    by_device = group_by(on_gpu, lambda facts: facts.device)
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
        f"{min(1.0, summary(shares)):.0%}".replace("%", " %")
        for summary in (min, statistics.median, max)
    )
    spread = f", {least} to {most}" if len(shares) > 1 else ""
    cases_of = count(len(shares), "case")
    return f"; the GPU itself needed {typical} of it (median of {cases_of}{spread})"
