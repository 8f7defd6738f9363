"""Cases that did the same work in the same way, and so may be ranked.

A view costs nothing and a copy moves its data; products in TF32 are not products in float32;
replicas that do not wait for each other train otherwise than one worker; two replicas have less to
exchange than four. Where cases of the same
work differ in this, each kind is a contest of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from fwbench.records.facts import CaseFacts
from fwbench.report.ranking.condition import is_exchange, is_unranked
from fwbench.report.ranking.precision import full_bits, reduced_bits
from fwbench.toggles import TOGGLES

T = TypeVar("T")


@dataclass(frozen=True)
class Timed:
    """A measured case, as rankings need it.

    Attributes:
        name: of the contestant: framework and execution, and toggles that were asked for.
        time_s: seconds of a call.
        facts: what fwbench recorded of it.
    """

    name: str
    time_s: float
    facts: CaseFacts


@dataclass(frozen=True)
class Contest:
    """Cases that did the same work in the same way.

    Attributes:
        entrants: all of them.
        label: what sets them apart from others that did the same work: `` (view)``, or empty.
    """

    entrants: Sequence[Timed]
    label: str

    @property
    def title(self) -> str:
        """The work, in words."""
        facts = self._first
        work = (facts.workload, facts.device, facts.direction, facts.dtype)
        return " ".join(map(str, (*work, facts.shape or facts.size))) + self.label

    @property
    def kind(self) -> tuple[str, str]:
        """What its means may be taken with: the kind of workload with the label, and the device."""
        return f"{kind(self._first)}{self.label}", self._first.device

    @property
    def family(self) -> tuple[Any, ...]:
        """What it has in common with the same work of another size."""
        facts = self._first
        return facts.workload, facts.device, facts.direction, facts.dtype, self.label

    @property
    def size(self) -> int:
        """The size of the inputs."""
        return self._first.size

    @cached_property
    def ranked(self) -> list[Timed]:
        """The cases whose times say what the work takes.

        Contended cases are left out, exchanges over memory, and trainings that are unequal to
        others of the same work.
        """
        return [
            timed
            for timed in self.entrants
            if not is_unranked(timed.facts) and timed.facts.unequal is None
        ]

    @property
    def _first(self) -> CaseFacts:
        return self.entrants[0].facts


def contests(cases: Iterable[Timed]) -> list[Contest]:
    """Contests of at least two cases; ``noop`` is left out, since it does no work."""
    return [contest for contest in works(cases) if len(contest.entrants) > 1]


def works(cases: Iterable[Timed]) -> list[Contest]:
    """Contests, and what a single case has done; ``noop`` is left out, since it does no work."""
    groups: dict[tuple[Any, ...], list[Timed]] = {}
    for timed in cases:
        if timed.facts.workload != "noop":
            groups.setdefault(work(timed.facts), []).append(timed)
    return [
        Contest(_distinct(entrants), label)
        for group in groups.values()
        for label, entrants in split(group, lambda timed: timed.facts).items()
    ]


def _distinct(entrants: Sequence[Timed]) -> list[Timed]:
    numbers = repeats(timed.name for timed in entrants)
    return [
        replace(timed, name=timed.name + number) if number else timed
        for timed, number in zip(entrants, numbers, strict=True)
    ]


def repeats(keys: Iterable[Hashable]) -> Iterator[str]:
    """`` #2`` and so on for each key that repeats an earlier one, and an empty text for others.

    Two tests of a session may measure the same case: ``torch eager`` and ``torch eager #2``.
    """
    seen: Counter[Hashable] = Counter()
    for key in keys:
        seen[key] += 1
        yield f" #{seen[key]}" if seen[key] > 1 else ""


def work(facts: CaseFacts) -> tuple[Any, ...]:
    """What cases of the same work have in common, the toggles that change it among that."""
    toggles = facts.toggles or {}
    # Earlier versions did not record all of today's toggles.
    changing = (
        toggles.get(toggle.name, toggle.default)
        for toggle in TOGGLES.values()
        if toggle.changes_work
    )
    # Toggles of other packages' frameworks may be lists.
    return (*facts.work, facts.steps_per_epoch, *map(str, changing))


def split(items: Iterable[T], facts_of: Callable[[T], CaseFacts]) -> dict[str, list[T]]:
    """Items by what sets them apart from others that did the same work: `` (view)``, `` (copy)``.

    Args:
        items: measured cases, in any form.
        facts_of: the facts of one.

    Returns:
        All items under an empty label where cases of the same work do not differ.
    """
    cases = [(item, facts_of(item)) for item in items]
    by_work: dict[tuple[Any, ...], list[CaseFacts]] = {}
    for _, facts in cases:
        by_work.setdefault(work(facts), []).append(facts)
    telling = [
        tell
        for tell in (_result, _precision, _agreement, _exchanging)
        if any(len({*map(tell, same)}) > 1 for same in by_work.values())
    ]
    parts: dict[str, list[T]] = {}
    for item, facts in cases:
        label = f" ({', '.join(tell(facts) for tell in telling)})" if telling else ""
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
    """What kind of workload a case is of; means are taken over one kind only."""
    if facts.epochs:
        return "training loops"
    if facts.direction != "train":
        what = "operations" if facts.parameters is None else "networks"
        return f"{what}, {facts.direction}"
    return "loaders" if facts.checked_steps is None else "training steps"
