"""Exact statistics over launches, few as they are.

All comparisons are of ratios: a contender's times against a base's. One value is one launch.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from math import comb
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

#: Samples of the bootstrap: the ends of a 99 % interval have 50 beyond them.
_RESAMPLES = 10_000

#: Of more values than these, medians are not drawn value by value.
_MANY = 100


def p_slower(base: Sequence[float], contender: Sequence[float], margin: float) -> float:
    """Probability that a contender no slower than the base by ``margin`` looks this slow.

    The one-sided Mann-Whitney test of ``contender`` against ``base x (1 + margin)``, exact: every
    arrangement of the values is counted (Mann and Whitney, Annals of Mathematical Statistics 18,
    1947, p. 50). Ties are counted against being slower, so the value is never too small.

    Args:
        margin: a share: 0.01 is 1 %.
    """
    wins = sum(contender_s > base_s * (1 + margin) for contender_s in contender for base_s in base)
    return _at_least(wins, len(base), len(contender))


def _at_least(wins: int, n: int, m: int) -> float:
    """The probability of at least this number of n x m pairs being won in random order."""
    return sum(_arrangements(n, m)[wins:]) / comb(n + m, n)


@cache
def _arrangements(n: int, m: int) -> tuple[int, ...]:
    """Numbers of arrangements of n and m values with 0, 1, ... n x m won pairs; exact."""
    # The coefficients of the Gaussian binomial: a product of (1 - q^(m+i)) / (1 - q^i), i = 1 .. n.
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for power in range(n * m, m + i - 1, -1):
            counts[power] -= counts[power - m - i]
        for power in range(i, n * m + 1):
            counts[power] += counts[power - i]
    return tuple(counts)


def smallest_p(n: int, m: int) -> float:
    """The smallest probability that the test can give with n and m launches."""
    return 1 / comb(n + m, n)


def launches_needed(level: float) -> int:
    """The launches on each side with which the test can give a probability of ``level``."""
    launches = 1
    while smallest_p(launches, launches) > level:
        launches += 1
    return launches


def ratio(base: Sequence[float], contender: Sequence[float]) -> float:
    """The contender's median time over the base's."""
    return statistics.median(contender) / statistics.median(base)


def interval(
    base: Sequence[float], contender: Sequence[float], confidence: float, seed: int
) -> tuple[float, float]:
    """A bootstrap interval of the ratio, by percentiles (Efron, Annals of Statistics 7, 1979).

    Args:
        confidence: 0.99 for a 99 % interval.

    Returns:
        Lower and upper end. With few launches it is hardly wider than what was seen: a description
        of the spread; what decides is the test.
    """
    random = np.random.default_rng(seed)
    medians = [_resampled_medians(np.asarray(times), random) for times in (contender, base)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(medians[0] / medians[1], (tail, 1 - tail))
    return float(low), float(high)


def _resampled_medians(times: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    if times.size <= _MANY:
        # Twice as fast as np.median, which does not sort short rows.
        drawn = np.sort(random.choice(times, (_RESAMPLES, times.size)), axis=1)
        middle = drawn[:, [(times.size - 1) // 2, times.size // 2]]
        return cast("NDArray[Any]", middle.mean(axis=1))
    # Drawing values is drawing their places, and the middle one of places that are drawn
    # evenly is Beta-distributed: no need to draw the others. (Of an even number it is one of the
    # two in the middle.)
    half = (times.size + 1) / 2
    places = random.beta(half, half, _RESAMPLES) * times.size
    return cast("NDArray[Any]", np.sort(times)[places.astype(int)])


def detectable(
    base: Sequence[float],
    contender: Sequence[float],
    margin: float,
    threshold: float,
    level: float,
    seed: int,
) -> float | None:
    """The smallest slow-down that launches which spread like these would have shown.

    It is simulated: launches of either side are resampled, and each time the slow-down of
    the contender is found that would have shown.

    Returns:
        A share: four of five such comparisons would have found it; None if no slow-down could have
        been shown at that level.
    """
    wins = _wins_needed(len(base), len(contender), level)
    if wins is None:
        return None
    draw = np.random.default_rng(seed)
    redrawn = _redrawn(np.asarray(base), draw)
    other = _redrawn(np.asarray(contender), draw) / ratio(base, contender)
    # A launch of the contender overtakes one of the base where it is slowed by more than this.
    overtaking = np.sort(
        ((1 + margin) * redrawn[:, :, None] / other[:, None, :]).reshape(len(redrawn), -1)
    )
    medians = (1 + threshold) * np.median(redrawn, axis=1) / np.median(other, axis=1)
    needed = np.maximum(overtaking[:, wins - 1], medians)
    return max(threshold, float(np.quantile(needed, _DETECTED)) - 1)


#: Comparisons that are simulated to find what would have shown, and the share that must show it:
#: more than is promised, because few launches say little of how far others would spread.
_SIMULATED = 1_000
_DETECTED = 0.9


def _wins_needed(n: int, m: int, level: float) -> int | None:
    """The won pairs with which the test reaches a level; None if all of them do not."""
    return next((wins for wins in range(1, n * m + 1) if _at_least(wins, n, m) <= level), None)


def _redrawn(times: NDArray[Any], draw: np.random.Generator) -> NDArray[Any]:
    """Resampled launches, as far apart as their number lets expect.

    Deviations from the median of few values are too small on average: by n / (n - 1), squared.
    """
    centre = np.median(times)
    wider = (times.size / max(times.size - 1, 1)) ** 0.5
    drawn = draw.choice(np.log(times / centre), (_SIMULATED, times.size)) * wider
    jitter = draw.standard_normal(drawn.shape) * np.std(np.log(times)) / times.size**0.5
    return cast("NDArray[Any]", centre * np.exp(drawn + jitter))
