"""When the rounds of a case are enough: their median is known precisely, or their time is over.

The median is known by a distribution-free interval: two of the sorted rounds, of which binomial
probabilities say how often the true median is between them, for any distribution of the rounds
(David and Nagaraja, *Order Statistics*, 3rd edition, 2003, section 7.1).

Looking at it again and again, and stopping at the first that is narrow, would make it optimistic.
So looks are few, at counts that grow by half, and share the error that is allowed: look k takes
1/k(k+1) of it, which adds up to the whole over any number of looks (Bonferroni's inequality). The
promise holds for independent rounds of one process. It says nothing of the next process.
"""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import TypedDict

#: The probability that the interval has the median in it, over all looks together.
CONFIDENCE = 0.99

#: What :attr:`Stopping.outcome` can be.
PRECISE, TIME_OVER = "precise", "time over"

#: Fewer rounds, or less time of them, are never enough: a disturbance of milliseconds would be all
#: that is seen.
_ROUNDS_AT_LEAST = 20
_TIME_AT_LEAST_S = 20e-3

#: From one look to the next.
_GROWTH = 1.5

#: Beyond this many rounds the normal distribution stands for the binomial: it is off by a rank at
#: most, of the fifty or more between the median and either end of the interval.
_EXACT_ROUNDS_AT_MOST = 1000


class StoppingFacts(TypedDict):
    """Facts of the rule; see :class:`fwbench.records.facts.CaseFacts`."""

    precision: float
    median_interval: float | None
    stopped: str


class Stopping:
    """Decides after each round of a case whether it was the last.

    Args:
        precision: the width of the median's interval that is narrow enough, as a share of the
            median.
        max_time_s: the time of rounds after which they end, precise or not.
    """

    def __init__(self, precision: float, max_time_s: float, min_rounds: int) -> None:
        self._precision = precision
        self._max_time_s = max_time_s
        self._min_rounds = min_rounds
        self._rounds_s: list[float] = []
        self._total_s = 0.0
        self._looks = 0
        self._next_look = max(_ROUNDS_AT_LEAST, min_rounds)
        self._interval: float | None = None
        self._precise = False

    @property
    def left_s(self) -> float:
        """Time that is left for further rounds; there may have to be more of them."""
        return self._max_time_s - self._total_s

    def add(self, seconds: float) -> bool:
        """True if the round was the last one."""
        # This code runs between two rounds, where asynchronous work can see it.
        self._rounds_s.append(seconds)
        self._total_s += seconds
        rounds = len(self._rounds_s)
        over = self._total_s >= self._max_time_s and rounds >= self._min_rounds
        if over or (rounds >= self._next_look and self._total_s >= _TIME_AT_LEAST_S):
            self._look(rounds)
        return over or self._precise

    def _look(self, rounds: int) -> None:
        self._looks += 1
        self._next_look = math.ceil(_GROWTH * rounds)
        self._interval = relative_interval(self._rounds_s, self.error)
        enough = rounds >= _ROUNDS_AT_LEAST and self._total_s >= _TIME_AT_LEAST_S
        narrow = self._interval is not None and self._interval < self._precision
        self._precise = enough and narrow

    @property
    def error(self) -> float:
        """The share of :data:`CONFIDENCE`'s error that the latest look has; there must be one."""
        return (1 - CONFIDENCE) / (self._looks * (self._looks + 1))

    def facts(self) -> StoppingFacts:
        """The rule, the interval that was reached, and why the rounds ended."""
        return {
            "precision": self._precision,
            "median_interval": self._interval,
            "stopped": PRECISE if self._precise else TIME_OVER,
        }


def relative_interval(values: Sequence[float], error: float) -> float | None:
    """The width of the interval of a median, as a share of the median.

    Args:
        error: the probability that the interval does not have the median in it.

    Returns:
        The width; None where there are too few values for any interval.
    """
    outside = ranks_outside(len(values), error)
    if not outside:
        return None
    ordered = sorted(values)
    return (ordered[-outside] - ordered[outside - 1]) / statistics.median(ordered)


@lru_cache(maxsize=256)
def ranks_outside(number: int, error: float) -> int:
    """The rank of the interval's ends, counted from either end of the sorted values.

    The largest r for which a fair coin shows heads fewer than r times in ``number`` throws with a
    probability of half of ``error`` at most: as often is the true median below the r-th value.

    Returns:
        The rank, from 1; 0 where there is no interval with so small an error.
    """
    if number > _EXACT_ROUNDS_AT_MOST:
        deviations = statistics.NormalDist().inv_cdf(1 - error / 2)
        return math.floor((number + 1 - deviations * math.sqrt(number)) / 2)
    ways, allowed = 0, error / 2 * 2.0**number
    for rank in range(number):
        ways += math.comb(number, rank)
        if ways > allowed:
            return rank
    return 0
