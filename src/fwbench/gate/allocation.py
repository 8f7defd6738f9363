"""Which cases go into the next launch: all of them so many times, or those that need it most."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fwbench.gate.history import History


class Allocation(Protocol):
    """Chooses the cases of each launch from what earlier ones have brought."""

    @property
    def launches(self) -> int | None:
        """How many launches there will be; None if that depends on what they bring."""

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """The cases of the next launch; none when there will not be another.

        Args:
            cases: that have not failed.
            history: of the launches so far.
        """


@dataclass(frozen=True)
class Fixed:
    """All cases, so many times."""

    launches: int

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """All, until there have been enough launches."""
        return cases if history.launches < self.launches else ()


@dataclass
class Budget:
    """The time that launches may take together, from the first of them on.

    Attributes:
        total_s: all of it.
        clock: tells the time, in seconds.
    """

    total_s: float
    clock: Callable[[], float] = time.monotonic
    _began_s: float | None = field(default=None, init=False)

    def start(self) -> None:
        """Let the time begin, unless it has: what collection took before is not spent."""
        if self._began_s is None:
            self._began_s = self.clock()

    @property
    def used_s(self) -> float:
        """What has gone by; nothing before the start."""
        return 0.0 if self._began_s is None else self.clock() - self._began_s

    def affordable(self, parts: Sequence[Sequence[str]], history: History) -> list[str]:
        """The cases of one more launch within what is left.

        Args:
            parts: of a launch, each whole or not at all; those to be preferred first.
            history: tells what they will take.
        """
        chosen: list[str] = []
        left_s = self.total_s - self.used_s
        for part in parts:
            if history.cost_s([*chosen, *part]) <= left_s:
                chosen += part
        return chosen


@dataclass
class Precise:
    """All cases at first, then those whose time is least certain, until each is known well enough.

    Attributes:
        budget: of all launches.
        resolution: a time is known if it is within this share of it.
        at_least: launches of every case, whatever the budget.
    """

    budget: Budget
    resolution: float
    at_least: int = 1
    launches: int | None = field(default=None, init=False)

    def select(self, cases: Sequence[str], history: History) -> Sequence[str]:
        """The cases that are not settled, as many as there is time for, the least certain first."""
        self.budget.start()
        if history.launches < self.at_least:
            return cases
        ordered = sorted(self.unsettled(cases, history), key=lambda c: -uncertainty(c, history))
        return self.budget.affordable([[case] for case in ordered], history)

    def unsettled(self, cases: Sequence[str], history: History) -> list[str]:
        """Those of some cases whose time is not known well enough."""
        measured = [case for case in cases if not history.lost(case)]
        return [case for case in measured if uncertainty(case, history) > self.resolution]


#: Student's t at 97.5 % for one degree of freedom and two; for more there is an expansion.
_T = (12.706, 4.303)


def uncertainty(case: str, history: History) -> float:
    """How far the typical time of a case may be from the one measured, as a share of it.

    Half the width of the 95 % interval of its mean logarithm over launches, by Student's t. With
    two launches that is nine times their deviation: two that agree by luck settle nothing.
    See Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, section 9.

    Args:
        case: its name.
        history: of its launches.

    Returns:
        Infinite with fewer than two launches.
    """
    logs = [math.log(time_s) for time_s in history.times_s(case)]
    if len(logs) < 2:  # noqa: PLR2004 (one has no spread)
        return math.inf
    deviation = statistics.stdev(logs) / math.sqrt(len(logs))
    return math.expm1(_t(len(logs) - 1) * deviation)


def _t(freedom: int) -> float:
    """Student's t at 97.5 %: Abramowitz and Stegun, 26.7.5, to within 1 % from three on."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
