"""Contests: cases that did the same work in the same way, with the fastest of them.

A view costs nothing and a copy moves its data; products in TF32 are not products in float32;
replicas that do not wait for each other train otherwise than one worker; two replicas have less to
exchange than four. Where cases of the same work differ in this, each kind is a contest of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, repeats
from fwbench.report.ranking.condition import full_bits, is_exchange, is_unranked, reduced_bits
from fwbench.terms.toggles import TOGGLES

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Contest:
    """Cases that did the same work in the same way.

    Attributes:
        entrants: all of them.
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


def contests(cases: Iterable[Measurement]) -> list[Contest]:
    """Contests of at least two cases; ``noop`` is left out, since it does no work."""
    return [contest for contest in works(cases) if len(contest.entrants) > 1]


def works(cases: Iterable[Measurement]) -> list[Contest]:
    """Contests, those of a single case among them; ``noop`` is left out, since it does no work."""
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    for case in cases:
        if case.facts.workload != "noop":
            groups.setdefault(work(case.facts), []).append(case)
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
    by_work: dict[tuple[Any, ...], list[CaseFacts]] = {}
    for _, facts in cases:
        by_work.setdefault(work(facts), []).append(facts)
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
    kinds: dict[tuple[str, str], list[Contest]] = {}
    for contest in contests:
        kinds.setdefault(contest.kind, []).append(contest)
    return kinds
