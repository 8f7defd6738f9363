"""Evidence from pairs of launches, valid however often it is looked at.

A pair is a launch of the base and one of the contender, side by side, in an order that chance
decided. What is looked at is the logarithm of their ratio, one difference a pair. If nothing has
changed, its sign is a fair coin, whatever the machine does: drift, two speeds, launches that
hang together. So evidence against "the contender is slower by at most so much" is the money of a
gambler who bets on the sign of each difference and starts with 1: if the claim is true, the chance
that it ever exceeds 1 / level is at most the level (Ville's inequality), and pairs can go on until
there is enough of it. See Ramdas, Grunwald, Vovk and Shafer, "Game-theoretic statistics and
safe anytime-valid inference", Statistical Science 38, 2023, and for bets on signs Ramdas, Ruf,
Larsson and Koolen, "Admissible anytime-valid sequential inference must rely on nonnegative
martingales", 2020, section 5.

A bet is larger for a larger difference, as in the signed-rank test, in units of the earlier
differences: it rises with the difference and is odd, so the claim may be any centre up to the one
that is tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The gambler has three purses: bold, moderate and cautious, which suit clear and small changes.
_STAKES = np.array([[0.98], [0.7], [0.35]])
_PURSES = np.array([[0.6], [0.25], [0.15]])

#: A difference of half the usual size is bet on with 3/4 of the stake.
_STEEPNESS = 2.0

#: Of a difference from itself; so that its logarithm exists.
_LEAST = 1e-9


def evidence(differences: Floats) -> Floats:
    """The logarithm of the evidence that differences have a centre above 0.

    Args:
        differences: along the last axis, in the order of their pairs.

    Returns:
        For each number of pairs, the largest so far; of the same shape.
    """
    sizes = np.log(np.maximum(np.abs(differences), _LEAST))
    counts = np.arange(1, differences.shape[-1] + 1)
    usual = np.exp(np.cumsum(sizes, axis=-1) / counts)
    # Known before the bet is made; of the first one nothing is, so all is bet on its sign.
    known = np.concatenate([np.full_like(usual[..., :1], _LEAST**2), usual[..., :-1]], axis=-1)
    bets = np.tanh(_STEEPNESS * differences / known)[..., None, :]
    money = np.log(_PURSES) + np.cumsum(np.log1p(_STAKES * bets), axis=-1)
    total = np.logaddexp.reduce(money, axis=-2)
    return cast("Floats", np.maximum.accumulate(total, axis=-1))


def shows(differences: Floats, needed: float) -> bool:
    """Whether the evidence that the centre lies above 0 has ever been enough.

    Args:
        differences: of the pairs so far.
        needed: the logarithm of the evidence that is asked for.
    """
    return bool(evidence(differences)[-1] >= needed)


@cache
def pairs_needed(needed: float) -> int:
    """The pairs after which a clear change is found, if they all agree.

    Args:
        needed: the logarithm of the evidence that is asked for.
    """
    pairs = 1
    while evidence(np.ones(pairs))[-1] < needed:
        pairs += 1
    return pairs


def interval(differences: Floats, confidence: float) -> tuple[float, float]:
    """Bounds of the centre, each of which holds with this confidence at all times together.

    Args:
        differences: of the pairs so far.
        confidence: of each bound.

    Returns:
        Lower and upper bound; infinite where so few pairs exclude nothing.
    """
    needed = -math.log(1 - confidence)
    low = -_upper(-differences, needed)
    return low, _upper(differences, needed)


#: Bounds are looked for up to here: a factor of 1,000.
_FARTHEST = math.log(1_000)


def _upper(differences: Floats, needed: float) -> float:
    return _least(
        lambda bound: shows(bound - differences, needed), float(np.median(differences)), _FARTHEST
    )


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least value that something holds for, between two; infinite if not even the higher."""
    if not holds(high):
        return math.inf
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


#: Bounds are given to a twentieth of a per cent.
_PRECISION = 5e-4

#: Jobs that are simulated to find what would have been found, and the share that must find it.
_SIMULATED = 100
_FOUND = 0.8


def detectable(
    differences: Floats, margin: float, threshold: float, needed: float, seed: int
) -> float | None:
    """The smallest change that as many pairs, spread like these, would have shown.

    It is simulated: differences from the median are drawn anew, with signs of their own.

    Args:
        differences: of the pairs so far.
        margin: conceded to chance.
        threshold: a change is at least as large.
        needed: the logarithm of the evidence that a verdict takes.
        seed: of what is drawn.

    Returns:
        As a logarithm; what four of five such jobs would have found. None if they would have found
        nothing at all.
    """
    if differences.size < pairs_needed(needed):
        return None
    draw = np.random.default_rng(seed)
    shape = (_SIMULATED, differences.size)
    spread = np.abs(differences - np.median(differences))
    noise = draw.choice(spread, shape) * draw.choice((-1.0, 1.0), shape)
    medians = np.median(noise, axis=-1)

    def is_found(change: float) -> bool:
        enough = evidence(noise + (change - margin))[..., -1] >= needed
        return bool(np.mean(enough & (medians + change >= threshold)) >= _FOUND)

    change = _least(is_found, threshold, _FARTHEST)
    return change if math.isfinite(change) else None


def differences(base: Sequence[float], contender: Sequence[float]) -> Floats:
    """The logarithms of the ratios of paired launches.

    Args:
        base: a figure, one for each launch, in their order.
        contender: the same of the other side, in the same order.
    """
    ratios: NDArray[Any] = np.asarray(contender, dtype=float) / np.asarray(base, dtype=float)
    return cast("Floats", np.log(ratios))
