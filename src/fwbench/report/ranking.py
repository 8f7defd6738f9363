"""Contests: cases that did the same work in the same way, with the fastest of them.

A contended time is an upper bound. It wins where it lies below the times of all others; where it
does not, it leaves open who is the fastest, because its lower bound is unknown. The fastest round
is not one: threads that wait for each other on shared processors make every round slower, and the
fastest of five took 32 ms for a product of 0.2 ms (docs/measuring.md).

A view costs nothing and a copy moves its data; products in TF32 are not products in float32;
replicas that do not wait for each other train otherwise than one worker; two replicas have less to
exchange than four. Where cases of the same work differ in this, each kind is a contest of its own.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, blur, group_by, ratio, repeats
from fwbench.records.repeatability import DECIDED
from fwbench.records.units import count
from fwbench.report.condition import (
    full_bits,
    is_contended,
    is_exchange,
    is_over_memory,
    reduced_bits,
)
from fwbench.terms.toggles import TOGGLES

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

#: From this ratio of bytes on, the same work is said to be done in wider numbers.
_WIDER = 1.2

#: A contest with fewer rivals whose times are known has no winner.
_RIVALS_AT_LEAST = 2


class Decision(Enum):
    """State of a contest."""

    ALONE = "without rivals"
    WON = "decided"
    CLOSE = "too close to call"
    DISTURBED = "not decided, since cases were contended"


def is_slower(case: Measurement, other: Measurement, quantile: float = DECIDED) -> bool:
    """True if a case is slower than another by more than their medians differ by chance."""
    return ratio(other, case).value > blur([(other, case)], quantile)


@dataclass(frozen=True)
class Rival:
    """A framework in a contest, as fast as its fastest execution."""

    cases: Sequence[Measurement]

    @cached_property
    def fastest(self) -> Measurement:
        """The case with the smallest time, contended or not."""
        return min(self.cases, key=lambda case: case.median_s)

    @cached_property
    def low_s(self) -> float:
        """The least that it may take undisturbed, in seconds; 0 where that is not known."""
        contended = any(is_contended(case.facts) for case in self.cases)
        return 0.0 if contended else self.fastest.median_s

    @property
    def is_known(self) -> bool:
        """True if a time of it is more than an upper bound."""
        return not all(is_contended(case.facts) for case in self.cases)

    @cached_property
    def quantile(self) -> float:
        """A leader with several executions that are as fast leads more easily by chance."""
        alike = sum(not is_slower(case, self.fastest) for case in self.cases)
        return 1 - (1 - DECIDED) / alike

    def is_behind(self, leader: "Rival") -> bool:
        """True if it is slower by more than their medians may differ by in other processes."""
        return self.low_s > 0 and is_slower(self.fastest, leader.fastest, leader.quantile)


@dataclass(frozen=True)
class Contest:
    """Cases that did the same work in the same way."""

    entrants: Sequence[Measurement]
    #: Their difference from others that did the same work: `` (view)``, or empty.
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
    def comparable(self) -> list[Measurement]:
        """The cases but exchanges over memory, and trainings unequal to others of the work."""
        return [
            case
            for case in self.entrants
            if not is_over_memory(case.facts) and case.facts.unequal is None
        ]

    @cached_property
    def ranked(self) -> list[Measurement]:
        """The comparable cases that were not contended."""
        return [case for case in self.comparable if not is_contended(case.facts)]

    @property
    def is_undisturbed(self) -> bool:
        """True if all of several cases can be ranked."""
        return 1 < len(self.ranked) == len(self.comparable)

    @property
    def is_between_frameworks(self) -> bool:
        """True if several frameworks entered it."""
        return len({case.facts.framework for case in self.comparable}) > 1

    @cached_property
    def rivals(self) -> list[Rival]:
        """The frameworks, or where there is only one its executions, the fastest first."""
        groups = group_by(
            self.comparable,
            lambda case: case.facts.framework if self.is_between_frameworks else case.contestant,
        )
        return sorted(map(Rival, groups.values()), key=lambda rival: rival.fastest.median_s)

    @cached_property
    def decision(self) -> Decision:
        """Decided or not; at least two rivals must be known for that."""
        if len(self.rivals) < _RIVALS_AT_LEAST:
            return Decision.ALONE
        first, *others = self.rivals
        if sum(rival.is_known for rival in self.rivals) < _RIVALS_AT_LEAST:
            return Decision.DISTURBED
        if all(rival.is_behind(first) for rival in others):
            return Decision.WON
        return Decision.CLOSE if all(r.low_s for r in self.rivals) else Decision.DISTURBED

    @property
    def fastest(self) -> Measurement | None:
        """The case that ratios are formed against; None where it cannot be told."""
        is_known = self.decision in (Decision.WON, Decision.CLOSE)
        return self.rivals[0].fastest if is_known else None

    def ratio(self, case: Measurement) -> float | None:
        """The time of a case over that of the fastest; None where one of them is not known."""
        least = self.fastest
        if least is None or not any(case is each for each in (least, *self.ranked)):
            return None
        return ratio(least, case).value

    def is_close(self, case: Measurement) -> bool:
        """True if a case cannot be told from the fastest."""
        if self.ratio(case) is None:
            return False
        first = self.rivals[0]
        return not is_slower(case, first.fastest, first.quantile)

    def ratios(
        self, among: Callable[[Measurement], bool] = lambda _: True
    ) -> list[tuple[Measurement, float]]:
        """Ranked cases, each with its time over that of the fastest of them."""
        cases = [case for case in self.ranked if among(case)]
        least = min(cases, key=lambda case: case.median_s, default=None)
        return [(case, ratio(least, case).value) for case in cases if least is not None]


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
) -> list[tuple[float | None, bool]]:
    """The time of each case over that of the fastest with its key, and whether that is close."""
    ratios: dict[int, tuple[float | None, bool]] = {}
    for group in group_by(cases, key).values():
        contest = Contest(_distinct(group), "")
        for case, entrant in zip(group, contest.entrants, strict=True):
            ratios[id(case)] = contest.ratio(entrant), contest.is_close(entrant)
    return [ratios[id(case)] for case in cases]


@dataclass(frozen=True)
class Difference:
    """The fastest and the slowest case of a contest, with the ratio of their times."""

    title: str
    fastest: Measurement
    slowest: Measurement

    @property
    def ratio(self) -> float:
        """The time of the slowest over that of the fastest."""
        return ratio(self.fastest, self.slowest).value


def differences(contests: Iterable[Contest]) -> list[Difference]:
    """The difference within each contest whose fastest case can be told, the largest first.

    There is none where even the slowest is too close to call.
    """
    pairs = []
    for contest in contests:
        if contest.fastest is not None:
            slowest = max(contest.ranked, key=lambda case: case.median_s)
            if contest.is_close(slowest):
                continue
            pairs.append(Difference(contest.title, contest.fastest, slowest))
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
    computes = facts.flops or facts.parameters is not None
    if facts.result_is_view is None and computes:
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
    if facts.checkpoint_bytes is not None:
        return "checkpoints"
    return "loaders" if facts.checked_steps is None else "training steps"


def by_kind(contests: Iterable[Contest]) -> Mapping[tuple[str, str], Sequence[Contest]]:
    """Contests by the kind of their workload and their device."""
    return group_by(contests, lambda contest: contest.kind)


#: A contestant with a smaller share of the cases of the one that has most is listed and not
#: ranked: it would shrink the set of cases that all share.
_SHARE_TO_BE_RANKED = 0.75

#: At least this many contestants are ranked, however few cases they share.
_RANKED_AT_LEAST = 2

COMPLETION = "completion time"


class Coverage(NamedTuple):
    """A part of all cases of some kind, without those that were disturbed."""

    known: int
    of: int

    @property
    def is_enough(self) -> bool:
        """True if it is half of them at least: less stands for nothing but what was quiet."""
        return 0 < self.of <= 2 * self.known

    @property
    def text(self) -> str:
        """``4 of 23 cases``."""
        return f"{self.known} of {count(self.of, 'case')}"


@dataclass(frozen=True)
class Answer:
    """The fastest frameworks, for one kind of workload on one device."""

    kind: str
    device: str
    fastest: Mapping[str, int]
    too_close: int
    disturbed: int

    @property
    def contests(self) -> int:
        """Number of contests that were decided or too close to call."""
        return sum(self.fastest.values()) + self.too_close

    @property
    def is_known(self) -> bool:
        """True if enough of the contests were decided or too close to call."""
        return Coverage(self.contests, self.contests + self.disturbed).is_enough

    @property
    def text(self) -> str:
        """The answer as a clause.

        ``torch for 21 of 33, numpy for 10; 2 too close to call; 13 disturbed``, or ``cannot be
        told: 40 of 46 rows disturbed``.
        """
        if not self.is_known:
            rows = count(self.contests + self.disturbed, "row")
            return f"cannot be told: {self.disturbed} of {rows} disturbed"
        parts: list[str] = []
        for name, number in self.fastest.items():
            total = "" if parts else f" of {self.contests}"
            parts.append(f"{name} for {number}{total}")
        close = f"{self.too_close} too close to call" if self.too_close else ""
        disturbed = f"{self.disturbed} disturbed" if self.disturbed else ""
        return "; ".join(filter(None, [", ".join(parts), close, disturbed]))


def answers(contests: Iterable[Contest]) -> list[Answer]:
    """An answer for each kind of workload and each device.

    Contests of a single framework are left out.
    """
    several = (contest for contest in contests if contest.is_between_frameworks)
    return [_answer(*key, group) for key, group in by_kind(several).items()]


def _answer(kind: str, device: str, contests: Sequence[Contest]) -> Answer:
    decisions = Counter(contest.decision for contest in contests)
    wins = Counter(
        contest.rivals[0].fastest.facts.framework
        for contest in contests
        if contest.decision is Decision.WON
    )
    close, disturbed = decisions[Decision.CLOSE], decisions[Decision.DISTURBED]
    return Answer(kind, device, dict(wins.most_common()), close, disturbed)


def extremes(contests: Iterable[Contest]) -> tuple[list[Contest], list[Contest]]:
    """Contests at the smallest size of works that have several, and at the largest of each.

    Small ones show the cost of a call and large ones that of its arithmetic: no mean is over both.
    """
    small, large = [], []
    for same in group_by(contests, lambda contest: contest.family).values():
        least, most = (of(contest.size for contest in same) for of in (min, max))
        small += [contest for contest in same if contest.size == least < most]
        large += [contest for contest in same if contest.size == most]
    return small, large


def have_single_sizes(contests: Iterable[Contest]) -> bool:
    """True if works of one size, which is not a large one, are among works of several."""
    small, large = ({contest.family for contest in part} for part in extremes(contests))
    return bool(small) and small != large


@dataclass(frozen=True)
class Mean:
    """The times of a contestant over those of the fastest, as geometric means."""

    name: str
    #: Over the smallest size of each work: what a call costs.
    smallest: float | None
    #: Over the largest: what the arithmetic costs. None where too many were disturbed.
    largest: float | None


@dataclass(frozen=True)
class Unranked:
    """A contestant that lacks cases."""

    name: str
    cases: int
    most: int
    unequal: int

    @property
    def text(self) -> str:
        """The number of its cases, in words."""
        others = f", and {self.unequal} unequal" if self.unequal else ""
        return f"not ranked: {self.cases} of {count(self.most, 'case')}{others}"


@dataclass(frozen=True)
class Ranking:
    """The contestants of one kind of workload."""

    title: str
    #: The cases of the smallest size of their work that all ranked contestants have.
    smallest: Coverage
    #: Those of the largest size.
    largest: Coverage
    #: Of the ranked contestants, the fastest first; none if too many were disturbed.
    means: Sequence[Mean]
    unranked: Sequence[Unranked]

    @property
    def why_empty(self) -> str:
        """The reason why no contestant is ranked."""
        names = ", ".join(contestant.name for contestant in self.unranked)
        known, of = (sum(each) for each in zip(self.smallest, self.largest, strict=True))
        if not of:
            return f"{names} share no case"
        sizes = " of the smallest and largest sizes" if self.smallest.of else ""
        return f"{names} share {count(of, 'case')}{sizes}, {known} of them undisturbed"


def rankings(contests: Iterable[Contest]) -> list[Ranking]:
    """A ranking for each kind of workload and each device."""
    kinds = by_kind(contests)
    several = len({device for _, device in kinds}) > 1
    return [
        _ranking(named(f"{kind}, {device}" if several else kind, device), group)
        for (kind, device), group in kinds.items()
    ]


def _ranking(title: str, contests: Sequence[Contest]) -> Ranking:
    cases = Counter(
        case.contestant
        for contest in contests
        if len(contest.comparable) > 1
        for case in contest.comparable
    )
    names = _ranked(cases)
    (smallest, in_smallest), (largest, in_largest) = (
        _shared(part, names) for part in extremes(contests)
    )
    means = [
        Mean(name, in_smallest.get(name), in_largest.get(name))
        for name in names
        if in_smallest or in_largest
    ]
    means.sort(key=lambda mean: (mean.largest or 0.0, mean.smallest or 0.0))
    unranked = _unranked(contests, cases, {mean.name for mean in means})
    return Ranking(title, smallest, largest, means, unranked)


def _shared(
    contests: Iterable[Contest], names: Collection[str]
) -> tuple[Coverage, Mapping[str, float]]:
    """Contests that all of these contestants entered, and means where enough of them are known."""

    def all_are_in(cases: Iterable[Measurement]) -> bool:
        return bool(names) and {*names} <= {case.contestant for case in cases}

    entered = [contest for contest in contests if all_are_in(contest.comparable)]
    known = [contest for contest in entered if all_are_in(contest.ranked)]
    part = Coverage(len(known), len(entered))
    if not part.is_enough:
        return part, {}
    return part, group_means(
        known, lambda case: case.contestant, lambda case: case.contestant in names
    )


def _ranked(cases: Counter[str]) -> list[str]:
    """The contestants that have enough cases to be compared over those that all share."""
    most = max(cases.values(), default=0)
    enough = [name for name, number in cases.items() if number >= _SHARE_TO_BE_RANKED * most]
    if len(enough) >= _RANKED_AT_LEAST:
        return enough
    return [name for name, _ in cases.most_common(_RANKED_AT_LEAST)]


def group_means(
    contests: Sequence[Contest],
    key: Callable[[Measurement], Key],
    among: Callable[[Measurement], bool] = lambda _: True,
) -> dict[Key, float]:
    """Geometric means of times over those of the fastest, by the key of cases.

    All are over the same contests: there is none for a key that lacks one of these.
    """
    ratios: dict[Key, list[float]] = defaultdict(list)
    for contest in contests:
        for case, behind in contest.ratios(among):
            ratios[key(case)].append(behind)
    return {
        name: statistics.geometric_mean(values)
        for name, values in ratios.items()
        if len(values) == len(contests)
    }


def framework_means(contests: Sequence[Contest]) -> tuple[Coverage, Mapping[str, float]]:
    """Geometric means of the times of frameworks, as fast as their fastest executions.

    Returns:
        The contests that all frameworks entered and whose fastest is known, of all contests; and
        the means over them of times over those of the fastest, by framework, the fastest first.
    """
    names = {case.framework for contest in contests for case in contest.comparable}
    shared = [
        contest
        for contest in contests
        if contest.fastest is not None
        and not is_contended(contest.fastest.facts)
        and {rival.fastest.framework for rival in contest.rivals} == names
    ]
    chosen = {id(rival.fastest) for contest in shared for rival in contest.rivals}
    means = group_means(shared, lambda case: case.framework, lambda case: id(case) in chosen)
    ordered = sorted(means.items(), key=lambda mean: mean[1])
    return Coverage(len(shared), len(contests)), dict(ordered)


def _unranked(
    contests: Iterable[Contest], cases: Counter[str], ranked: Collection[str]
) -> list[Unranked]:
    entrants = [case for contest in contests for case in contest.entrants]
    entered = Counter(case.contestant for case in entrants)
    unequal = Counter(case.contestant for case in entrants if case.facts.unequal is not None)
    most = max(cases.values(), default=0)
    return [
        Unranked(name, cases[name], most, unequal[name])
        for name, _ in entered.most_common()
        if name not in ranked
    ]


def has_several(device: str) -> bool:
    """True if the time of a call on a device may mean more than one thing."""
    return device.startswith("gpu")


def named(text: str, device: str) -> str:
    """A text of times; for a GPU with the name of the time: ``operations (completion time)``."""
    return f"{text} ({COMPLETION})" if has_several(device) else text


def notes(cases: Sequence[CaseFacts]) -> list[str]:
    """Which time ranks the cases of each GPU, and whose cases move more bytes than others'."""
    on_gpu = (facts for facts in cases if has_several(facts.device))
    by_device = group_by(on_gpu, lambda facts: facts.device)
    ranked_by = [
        f"cases on {device} are ranked by {COMPLETION}, until the result exists: launch, kernel "
        f"and wait{_busy(on_device)}"
        for device, on_device in sorted(by_device.items())
    ]
    return [*ranked_by, *_wider(cases)]


def _wider(cases: Sequence[CaseFacts]) -> list[str]:
    """Frameworks whose indices, masks or results are wider than others' in the same work."""
    wider: dict[str, dict[str, float]] = defaultdict(dict)
    for same in group_by((facts for facts in cases if facts.bytes), work).values():
        moved_bytes = {facts.framework: facts.bytes or 0.0 for facts in same}
        least_bytes = min(moved_bytes.values())
        for framework, own_bytes in moved_bytes.items():
            if own_bytes > _WIDER * least_bytes:
                wider[framework][same[0].workload] = own_bytes / least_bytes
    return [
        f"{framework} moves more bytes than others, since its numbers are wider: "
        + ", ".join(f"{workload} ({ratio:.2g}x)" for workload, ratio in sorted(ratios.items()))
        for framework, ratios in sorted(wider.items())
    ]


def _busy(cases: Sequence[CaseFacts]) -> str:
    """The share of the time that the device itself needed, by each of its own clocks."""
    shares: dict[str, list[float]] = defaultdict(list)
    for facts in cases:
        for clock, device_s in facts.on_device_s.items():
            if facts.completion_s:
                shares[clock].append(min(1.0, device_s / facts.completion_s))
    parts = (f"{_typical(of_clock)}, by {clock}" for clock, of_clock in sorted(shares.items()))
    return "".join(f"; the GPU itself needed {part})" for part in parts)


def _typical(shares: Sequence[float]) -> str:
    least, typical, most = (
        f"{summary(shares):.0%}".replace("%", " %") for summary in (min, statistics.median, max)
    )
    spread = f", {least} to {most}" if len(shares) > 1 else ""
    return f"{typical} of it (median of {count(len(shares), 'case')}{spread}"
