"""Properties of random numbers: the moments of their distribution, and their range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Moments:
    """Properties of independent random numbers of one distribution.

    Attributes:
        mean: of the distribution.
        variance: of the distribution.
        kurtosis: the fourth central moment over the square of the variance; 3 for normal numbers.
        lowest: no number is smaller.
        highest: no number is larger.
        values: all that a number can be, in ascending order; None where they are continuous.
        distinct: whether no number occurs twice, as in a permutation.
        drawn: ``drawn(result, *operands)``, the numbers that were drawn, where a result is made of
            them and of operands.
    """

    mean: float
    variance: float
    kurtosis: float
    lowest: float = -np.inf
    highest: float = np.inf
    values: tuple[float, ...] | None = None
    distinct: bool = False
    drawn: Callable[..., NDArray[Any]] = lambda result, *_: result


def discrete(values: Sequence[float], probabilities: Sequence[float], **others: Any) -> Moments:
    """The moments of numbers that are each one of a few.

    Args:
        values: in ascending order.
        probabilities: of each.
        others: further attributes of :class:`Moments`.
    """
    x, p = np.asarray(values, float), np.asarray(probabilities, float)
    mean = float(np.sum(p * x))
    second, fourth = (float(np.sum(p * (x - mean) ** power)) for power in (2, 4))
    return Moments(mean, second, fourth / second**2, values=tuple(map(float, x)), **others)
