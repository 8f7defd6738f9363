"""A race of contestants with equal medians names no winner, however their launches are distributed.

The second of two contestants differs from the first in shape alone: a longer tail, a second speed,
slow stretches of its own. Bound: at most 1 % of races name a winner, but for stretches of any
length: one that lasts for as many launches as a race takes cannot be told from being slow.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import bounds
import numpy as np
from numpy.typing import NDArray

from fwbench.gate.race import RaceGroup

Floats = NDArray[np.float64]

_LAUNCHES, _THRESHOLD, _WRONG_AT_MOST = 60, 0.03, 0.01
_DEVIATIONS = (0.01, 0.02, 0.03, 0.05)


def _same(_draw: np.random.Generator, shape: tuple[int, int], _deviation: float) -> Floats:
    return np.zeros(shape)


def _longer_tail(draw: np.random.Generator, shape: tuple[int, int], deviation: float) -> Floats:
    return 3 * deviation * (draw.exponential(1, shape) - math.log(2))


def _second_speed(draw: np.random.Generator, shape: tuple[int, int], _deviation: float) -> Floats:
    return math.log(1.4) * (draw.random(shape) < 0.45)


def _far_slower_speed(
    draw: np.random.Generator, shape: tuple[int, int], _deviation: float
) -> Floats:
    return math.log(4) * (draw.random(shape) < 0.45)


def _slow_for_ten(draw: np.random.Generator, shape: tuple[int, int], _deviation: float) -> Floats:
    left = np.where(draw.random(shape[0]) < 0.2, draw.integers(1, 11, shape[0]), 0)
    states = []
    for _ in range(shape[1]):
        left = np.where((left == 0) & (draw.random(shape[0]) < 1 / 40), 10, left)
        states.append(left > 0)
        left = np.maximum(left - 1, 0)
    return math.log(1.3) * np.array(states).T


def _slow_stretches(draw: np.random.Generator, shape: tuple[int, int], _deviation: float) -> Floats:
    is_slow, states = draw.random(shape[0]) < 0.2, []
    for _ in range(shape[1]):
        is_slow ^= draw.random(shape[0]) < np.where(is_slow, 1 / 10, 1 / 40)
        states.append(is_slow.copy())
    return math.log(1.3) * np.array(states).T


_SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int], float], Floats]] = {
    "the same": _same,
    "a longer tail": _longer_tail,
    "a second speed of 1.4x in 45 % of launches": _second_speed,
    "slow for ten launches in a row": _slow_for_ten,
    "slow stretches of any length, ten launches on average": _slow_stretches,
    "a second speed of 4x in 45 % of launches": _far_slower_speed,
}


def _share_with_winner(differences: Floats) -> float:
    """The share of races, one a row, that name a winner before a tie."""
    test = RaceGroup("work", {"first": "first", "second": "second"}, _THRESHOLD).test()
    counts = range(1, 1 + differences.shape[1])
    medians = np.array([np.median(differences[:, :number], axis=1) for number in counts]).T
    beyond = np.abs(medians) >= test.threshold
    won = beyond & np.where(medians > 0, test.proves(differences), test.proves(-differences))
    tied = test.excludes(differences, test.threshold)
    first_won, first_tied = (
        np.where(any_of.any(axis=1), any_of.argmax(axis=1), differences.shape[1])
        for any_of in (won, tied)
    )
    return float(np.mean(first_won < np.minimum(first_tied + 1, differences.shape[1])))


def main() -> int:
    """Simulate races of each kind, and compare with the bound."""
    arguments = bounds.arguments(__doc__, rounds=3000)
    draw = np.random.default_rng(3)
    findings = []
    for name, shape in _SHAPES.items():
        for deviation in _DEVIATIONS:
            size = (arguments.rounds, _LAUNCHES)
            second = shape(draw, size, deviation)
            noise = draw.normal(0, deviation, size) - draw.normal(0, deviation, size)
            wrong = _share_with_winner(second + noise)
            what = f"{name}, deviation of launches {deviation:.0%}: a winner"
            is_bound = shape is not _slow_stretches
            bound = f"at most {_WRONG_AT_MOST:.0%}" if is_bound else ""
            kept = wrong <= _WRONG_AT_MOST if is_bound else None
            findings.append(bounds.Finding(what, f"{wrong:.1%} of races", bound, kept))
    return bounds.conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
