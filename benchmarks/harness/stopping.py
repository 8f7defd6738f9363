"""Check the rule of `fwbench.measure.stopping`: the intervals of made-up rounds.

Rounds of half a millisecond that are independent of each other: the interval at which they end must
miss the true median in at most 1 % of the cases, with little scatter and with much. Then rounds
each of which depends on the one before, of which the rule promises nothing: how often it misses,
and by how much the median is off.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from bounds import Finding, arguments, conclude

from fwbench.measure.stopping import CONFIDENCE, Stopping, ranks_outside

_CASES = 1_000
_ROUND_S = 500e-6
_PRECISION, _MAX_TIME_S, _MIN_ROUNDS = 0.02, 0.4, 5

#: Scatter of the rounds' logarithms, and correlation of each with the one before.
_MODELS = (
    *((scatter, 0.0) for scatter in (0.01, 0.02, 0.05, 0.1)),
    *((0.02, correlation) for correlation in (0.5, 0.9, 0.99)),
)


@dataclass(frozen=True)
class _Case:
    rounds: int
    missed: bool
    error: float  # of the median, as a share


def _rounds(scatter: float, correlation: float) -> Iterator[float]:
    """Rounds without end, whose logarithms are an autoregressive process of the first order."""
    log = random.gauss(0, scatter)
    while True:
        yield _ROUND_S * math.exp(log)
        log = correlation * log + math.sqrt(1 - correlation**2) * random.gauss(0, scatter)


def _case(scatter: float, correlation: float) -> _Case:
    rule = Stopping(_PRECISION, _MAX_TIME_S, _MIN_ROUNDS)
    made: list[float] = []
    for round_s in _rounds(scatter, correlation):
        made.append(round_s)
        if rule.add(round_s):
            break
    ordered = sorted(made)
    outside = ranks_outside(len(made), rule.error)
    missed = not ordered[outside - 1] <= _ROUND_S <= ordered[-outside]
    return _Case(len(made), missed, abs(statistics.median(made) / _ROUND_S - 1))


def _finding(cases: int, scatter: float, correlation: float) -> Finding:
    made = [_case(scatter, correlation) for _ in range(cases)]
    missed = sum(case.missed for case in made) / cases
    rounds = statistics.mean(case.rounds for case in made)
    off = statistics.quantiles((case.error for case in made), n=10)[-1]
    figure = f"{missed:.1%} missed, {rounds:.0f} rounds, nine in ten off by at most {off:.1%}"
    what = f"scatter {scatter:.0%}, correlation {correlation:g}"
    if correlation:
        return Finding(what, figure)
    return Finding(what, figure, f"at most {1 - CONFIDENCE:.0%} missed", missed <= 1 - CONFIDENCE)


def main() -> int:
    """Draw the rounds, and print the table."""
    cases = arguments(__doc__, rounds=_CASES).rounds
    random.seed(1)
    return conclude([_finding(cases, *model) for model in _MODELS])


if __name__ == "__main__":
    sys.exit(main())
