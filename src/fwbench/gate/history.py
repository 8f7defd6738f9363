"""What launches have brought so far, and what further ones would take."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from fwbench.gate.paired import Floats, differences
from fwbench.records.facts import CaseFacts


@dataclass(frozen=True)
class Result:
    """What one launch brought of one case.

    Attributes:
        took_s: for all of it: preparation, verification and rounds.
        time_s: what stands for the launch; None if the case failed or was skipped.
        contended: whether it had to share its processors with other processes.
        facts: what was recorded; None if nothing was.
        lost: why there is no time.
    """

    took_s: float
    time_s: float | None = None
    contended: bool = False
    facts: CaseFacts | None = None
    lost: str = ""


class History:
    """The launches of a session, as far as they have come.

    Attributes:
        launches: how many have ended.
        took_s: how long these took together.
        overhead_s: what the latest of them took beyond its cases, such as imports.
    """

    def __init__(self) -> None:
        self.launches = 0
        self.took_s = 0.0
        self.overhead_s = 0.0
        self._results: dict[str, dict[int, Result]] = {}
        self._latest: set[str] = set()

    def add(self, case: str, result: Result) -> None:
        """Add what the launch that goes on has brought of a case.

        Args:
            case: its name, the same in every launch.
            result: of the case.
        """
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
        """Those of which there is a result, or the reason why there is none."""
        return list(self._results)

    def lost(self, case: str) -> str:
        """Why a case has no time of its last launch; empty if it has one."""
        return next(reversed(self._results[case].values())).lost

    def facts(self, case: str) -> CaseFacts | None:
        """What its first launch recorded of a case."""
        return next(iter(self._results[case].values())).facts

    def times_s(self, case: str, *, contended: bool = True) -> list[float]:
        """The time of each launch of a case, in their order.

        Args:
            case: its name.
            contended: whether those that had to share their processors are among them.
        """
        return [
            result.time_s
            for result in self._results.get(case, {}).values()
            if result.time_s is not None and (contended or not result.contended)
        ]

    def time_s(self, case: str) -> float:
        """The median time of a case; without contended launches, if there are others."""
        return statistics.median(self.times_s(case, contended=False) or self.times_s(case))

    def number(self, case: str) -> int:
        """How many launches measured a case."""
        return len(self.times_s(case))

    def contended(self, case: str) -> int:
        """In how many of them it had to share its processors."""
        return self.number(case) - len(self.times_s(case, contended=False))

    def paired(self, case: str, other: str) -> Floats:
        """Logarithms of the ratios of another case's times to a case's, in launches of both.

        Args:
            case: one.
            other: above 0 where it was slower.

        Returns:
            One for each launch in which neither was contended.
        """
        own, others = self._results[case], self._results[other]
        pairs = [
            (own[launch].time_s, others[launch].time_s)
            for launch in sorted(own.keys() & others.keys())
            if not (own[launch].contended or others[launch].contended)
        ]
        complete = [(a, b) for a, b in pairs if a is not None and b is not None]
        if not complete:
            return np.empty(0)
        return differences(*zip(*complete, strict=True))

    def cost_of_s(self, case: str) -> float:
        """What a case takes in a launch."""
        return min(result.took_s for result in self._results[case].values())

    def cost_s(self, cases: Collection[str]) -> float:
        """How long a launch of these cases will take, as earlier ones tell."""
        return self.overhead_s + sum(map(self.cost_of_s, cases))
