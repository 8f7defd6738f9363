"""The cases of the next launch: all of them, or those that need it most within a budget of time."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from fwbench.gate.sequential import Floats
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import in_turns
from fwbench.records.repeatability import DECIDED, student
from fwbench.records.session_facts import StoredBudget, StoredUnsettled
from fwbench.records.units import SHARE


class Allocation(Protocol):
    """Chooses the cases of each launch from what earlier ones have brought."""

    @property
    def launches(self) -> int | None:
        """Number of launches; None if that depends on their results."""

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """The cases of the next launch; none when there will not be another."""


@dataclass(frozen=True)
class Fixed:
    """A fixed number of launches of all cases."""

    launches: int

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """All, until there have been enough launches."""
        return cases if history.launches < self.launches else ()


@dataclass
class Budget:
    """The time that launches may take together, from the first of them on."""

    total_s: float
    clock: Callable[[], float] = time.monotonic
    _began_s: float | None = field(default=None, init=False)

    def start(self) -> None:
        """Let the time begin, unless it has: what collection took before is not spent."""
        if self._began_s is None:
            self._began_s = self.clock()

    @property
    def used_s(self) -> float:
        """Time since the start; 0 before it."""
        return 0.0 if self._began_s is None else self.clock() - self._began_s

    def affordable(self, parts: Sequence[Sequence[str]], history: History) -> list[str]:
        """The cases of one more launch within what is left."""
        chosen: list[str] = []
        left_s = self.total_s - self.used_s
        for part in parts:
            if history.cost_s([*chosen, *part]) <= left_s:
                chosen += part
        return chosen


@dataclass
class Precise:
    """All cases at first, then those that are least certain, until each is known well enough."""

    budget: Budget
    #: A time is known if it is within this share of it.
    resolution: float
    #: Launches of every case, even beyond the budget.
    at_least: int = 1
    launches: int | None = field(default=None, init=False)

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """The cases with uncertain times that there is time for, the least certain first."""
        self.budget.start()
        if history.launches < self.at_least:
            return cases
        ordered = sorted(self.unsettled(cases, history), key=lambda c: -uncertainty(c, history))
        return self.budget.affordable([[case] for case in ordered], history)

    def unsettled(self, cases: Sequence[str], history: History) -> list[str]:
        """Cases whose time is not known well enough."""
        measured = [case for case in cases if not history.lost(case)]
        return [case for case in measured if uncertainty(case, history) > self.resolution]


def uncertainty(case: str, history: History) -> float:
    """Uncertainty of the typical time of a case, as a share of it.

    Half the width of the 95 % interval of the median over launches, which is what is shown: by
    Student's t, times sqrt(pi / 2), by which a median scatters more than a mean. With two launches
    that is eleven times their deviation: two that agree by luck are not enough. It holds in 95 %
    though it is looked at after every launch (docs/comparing.md).
    See Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, section 9.

    Returns:
        Infinite with fewer than two launches.
    """
    logs = [math.log(time_s) for time_s in history.times_s(case)]
    if len(logs) < 2:  # noqa: PLR2004 (one has no spread)
        return math.inf
    deviation = statistics.stdev(logs) * math.sqrt(math.pi / 2 / len(logs))
    return math.expm1(student(len(logs) - 1, DECIDED) * deviation)


@dataclass(frozen=True)
class Result:
    """Result of one case in one launch."""

    took_s: float
    #: What stands for the launch; None if the case failed or was skipped.
    time_s: float | None = None
    contended: bool = False
    facts: CaseFacts | None = None
    lost: str = ""


def _difference(result: Result, other: Result) -> float | None:
    """The logarithm of the ratio of two results of a launch; None if one of them is lost."""
    if result.time_s is None or other.time_s is None:
        return None
    if result.facts is not None and other.facts is not None:
        logs = in_turns(result.facts.turns, other.facts.turns)
        if logs:
            return statistics.median(logs)
    return math.log(other.time_s / result.time_s)


class History:
    """The launches of a session, as far as they have come."""

    def __init__(self) -> None:
        self.launches = 0
        self.took_s = 0.0
        #: What the latest of them took beyond its cases, such as imports.
        self.overhead_s = 0.0
        self._results: dict[str, dict[int, Result]] = {}
        self._latest: set[str] = set()

    def add(self, case: str, result: Result) -> None:
        """Add what the launch that goes on has brought of a case."""
        self._results.setdefault(case, {})[self.launches] = result
        self._latest.add(case)

    def end_launch(self, took_s: float) -> None:
        """Say that a launch is over, and how long it took."""
        self.overhead_s = max(0.0, took_s - sum(map(self.cost_of_s, self._latest)))
        self._latest.clear()
        self.launches += 1
        self.took_s += took_s

    @property
    def cases(self) -> Sequence[str]:
        """Cases with a result, or the reason why there is none."""
        return list(self._results)

    def lost(self, case: str) -> str:
        """Why a case has no time of its last launch; empty if it has one."""
        return next(reversed(self._results[case].values())).lost

    def facts(self, case: str) -> CaseFacts | None:
        """Facts that the first launch of a case recorded."""
        return next(iter(self._results[case].values())).facts

    def times_s(self, case: str, *, contended: bool = True) -> list[float]:
        """The time of each launch of a case, in their order."""
        return [
            result.time_s
            for result in self._results.get(case, {}).values()
            if result.time_s is not None and (contended or not result.contended)
        ]

    def time_s(self, case: str) -> float:
        """The median time of a case; without contended launches, if there are others."""
        return statistics.median(self.times_s(case, contended=False) or self.times_s(case))

    def number(self, case: str) -> int:
        """Number of launches that measured a case."""
        return len(self.times_s(case))

    def contended(self, case: str) -> int:
        """Number of launches in which it had to share its processors."""
        return self.number(case) - len(self.times_s(case, contended=False))

    def paired(self, case: str, other: str) -> Floats:
        """Logarithms of the ratios of another case's times to a case's, in launches of both.

        That of a launch in which they took turns is the median of its visits' ratios.

        Args:
            other: above 0 where it was slower.

        Returns:
            One for each launch, contended or not: which one is depends on its times.
        """
        results, others = self._results[case], self._results[other]
        pairs = [
            _difference(results[launch], others[launch])
            for launch in sorted(results.keys() & others.keys())
        ]
        return np.array([pair for pair in pairs if pair is not None], dtype=float)

    def cost_of_s(self, case: str) -> float:
        """Time of a case in a launch."""
        return min(result.took_s for result in self._results[case].values())

    def cost_s(self, cases: Collection[str]) -> float:
        """Expected time of a launch of these cases, from earlier ones."""
        return self.overhead_s + sum(map(self.cost_of_s, cases))


def budget_facts(budget: Budget, history: History, precise: Precise | None = None) -> StoredBudget:
    """The use of a session's time, for its record; ``precise`` is None for a race."""
    return StoredBudget(
        budget_s=budget.total_s,
        took_s=history.took_s,
        launches=history.launches,
        cases=sum(history.number(case) > 0 for case in history.cases),
        launch_s=history.cost_s(history.cases) if history.launches else None,
        resolution=None if precise is None else precise.resolution,
        unsettled=None if precise is None else _unsettled_facts(precise, history),
    )


def _unsettled_facts(precise: Precise, history: History) -> list[StoredUnsettled]:
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
