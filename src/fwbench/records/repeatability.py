"""Repeatability: how far medians of the same case are apart in two processes.

Rounds of one process share its memory layout, its threads' places and its luck: "99 %" intervals
over rounds held in 19 % of 180 pairs of sessions. So what is shown is judged by processes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from fwbench.records.session_facts import StoredRevisits
from fwbench.records.units import count

#: Quantiles of Student's t: of what decides, at 5 % in both directions, and of 90 % intervals.
DECIDED, INTERVAL = 0.975, 0.95

#: Fewer launches, or revisited cases, do not show how far others would be apart.
_AT_LEAST = 3


@cache
def student(freedom: float, quantile: float) -> float:
    """A quantile of Student's t; of the normal distribution for infinite degrees of freedom."""
    if math.isinf(freedom):
        return statistics.NormalDist().inv_cdf(quantile)
    from scipy.special import stdtrit  # a session without comparisons needs none

    return float(stdtrit(freedom, quantile))


class Repeatability(NamedTuple):
    """The standard deviation of a median's logarithm between processes.

    Attributes:
        freedom: degrees of freedom of ``sd``; infinite where it is assumed.
        source: what was measured; empty where ``sd`` is assumed.
    """

    sd: float
    freedom: float = math.inf
    source: str = ""

    @property
    def text(self) -> str:
        """``medians here repeat to within 9 % (12 cases revisited)``."""
        difference = math.expm1(student(self.freedom, INTERVAL) * math.sqrt(2) * self.sd)
        percent = f"{max(1, round(100 * difference))} %"
        if self.source:
            return f"medians here repeat to within {percent} ({self.source})"
        return f"medians are assumed to repeat to within {percent}: --fw-revisit 12 measures it"


ASSUMED = Repeatability(math.log(1.05) / math.sqrt(2) / student(math.inf, INTERVAL))


def known(launches_s: Sequence[float], revisits: StoredRevisits | None) -> Repeatability:
    """Repeatability of the median of launches, or else of a case of its session."""
    if (number := len(launches_s)) >= _AT_LEAST:
        # A median scatters by a factor of sqrt(pi / 2) more than a mean.
        sd = statistics.stdev(map(math.log, launches_s)) * math.sqrt(math.pi / 2 / number)
        return Repeatability(sd, number - 1, "by launches")
    if revisits is None or revisits.cases < _AT_LEAST:
        return ASSUMED
    sd = min(revisits.sd, 9.0)  # what a file has must have an exponential
    return Repeatability(sd, revisits.cases, f"{count(revisits.cases, 'case')} revisited")


def of_pairs(pairs: dict[str, list[float]]) -> StoredRevisits | None:
    """The record of cases that were measured twice: both medians in seconds, by node id."""
    if not pairs:
        return None
    squares = statistics.fmean(math.log(second / first) ** 2 for first, second in pairs.values())
    return StoredRevisits(cases=len(pairs), sd=math.sqrt(squares / 2), pairs=pairs)


def typical(every: Iterable[Repeatability]) -> Repeatability:
    """The middle one of those that were measured, if any."""
    measured = sorted(each for each in every if each.source)
    return measured[len(measured) // 2] if measured else ASSUMED
