"""Distributions: of the inputs that are timed, and of random results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The toggle that says which, and its values.
INPUTS, NORMAL, ZEROS = "inputs", "normal", "zeros"


def has_numbers(operands: Sequence[NDArray[Any]]) -> bool:
    """True if any of the operands is floating-point or complex."""
    return any(np.issubdtype(x.dtype, np.inexact) for x in operands)


def zeros(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Zeros for floating-point and complex operands; whole numbers, such as indices, stay."""
    return [np.zeros_like(x) if np.issubdtype(x.dtype, np.inexact) else x for x in operands]


def is_defined(
    reference: Callable[..., Any], operands: Sequence[NDArray[Any]], parameters: Sequence[Any]
) -> bool:
    """True if a function of zeros has finite results."""
    try:
        with np.errstate(all="ignore"):
            results = reference(*zeros(operands), *parameters)
    except (ArithmeticError, ValueError):  # as NumPy's of linear algebra are
        return False
    every = results if isinstance(results, tuple) else (results,)
    return all(bool(np.all(np.isfinite(x))) for x in every)


@dataclass(frozen=True)
class Moments:
    """Properties of independent random numbers of one distribution."""

    mean: float
    variance: float
    #: The fourth central moment over the square of the variance; 3 for normal numbers.
    kurtosis: float
    lowest: float = -np.inf
    highest: float = np.inf
    #: All that a number can be, in ascending order; None where they are continuous.
    values: tuple[float, ...] | None = None
    #: Whether no number occurs twice, as in a permutation.
    distinct: bool = False
    #: ``drawn(result, *operands)``, the numbers that were drawn, where a result is made of them and
    #: of operands.
    drawn: Callable[..., NDArray[Any]] = lambda result, *_: result


def discrete(values: Sequence[float], probabilities: Sequence[float], **others: Any) -> Moments:
    """The moments of numbers that are each one of a few; ``others`` as in :class:`Moments`."""
    x, p = np.asarray(values, float), np.asarray(probabilities, float)
    mean = float(np.sum(p * x))
    second, fourth = (float(np.sum(p * (x - mean) ** power)) for power in (2, 4))
    return Moments(mean, second, fourth / second**2, values=tuple(map(float, x)), **others)
