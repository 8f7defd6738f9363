"""Deviation of an array from its reference, element by element.

Errors are relative to the larger of the reference's element and the root mean square of the
reference, so that an element which happens to be near zero does not look wrong.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Arrays are compared in blocks of so many elements: what is made of a block stays in a cache.
_BLOCK = 2**15

#: Numbers beyond this or its reciprocal are not squared as they are.
_SQUARED_AT_LEAST = 1e-100


class Errors(NamedTuple):
    """The relative errors of all elements.

    Attributes:
        largest: of them.
        worst: the index of the element that it is of, in the order of the elements.
        rms: root mean square.
        beyond: how many are larger than allowed.
    """

    largest: float
    worst: int
    rms: float
    beyond: int


def relative(actual: NDArray[Any], reference: NDArray[Any], allowed: float) -> Errors:
    """The relative errors of an array; infinite where no error is allowed and there is one.

    Args:
        actual: the array.
        reference: what it should be: numbers of the same shape, at least one.
        allowed: larger ones are counted.
    """
    actual, reference = actual.reshape(-1), reference.reshape(-1)
    least = _least_scale(reference)
    largest, worst, squares, beyond = -1.0, 0, 0.0, 0
    for start in range(0, reference.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        errors = _block_errors(actual[block], reference[block], least)
        place = int(np.argmax(errors))
        if errors[place] > largest:
            largest, worst = float(errors[place]), start + place
        squares += _sum_of_squares(errors)
        beyond += int(np.count_nonzero(errors > allowed))
    return Errors(largest, worst, math.sqrt(squares / reference.size), beyond)


def _block_errors(
    actual: NDArray[Any], reference: NDArray[Any], least: float
) -> NDArray[np.float64]:
    """The relative errors of a block; ``least`` is what they are at least relative to."""
    exact = all(np.issubdtype(array.dtype, np.integer) for array in (actual, reference))
    if exact:  # float64 could not tell large ones apart
        return np.where(actual == reference, 0.0, np.inf)
    wide = np.result_type(actual, reference, np.float64)
    actual = actual.astype(wide, copy=False)
    reference = reference.astype(wide, copy=False)
    with np.errstate(all="ignore"):  # infinities are judged below
        errors: NDArray[np.float64] = np.abs(actual - reference)
        errors /= np.maximum(np.abs(reference), least)
    if not np.all(np.isfinite(errors)):
        # Infinities and NaNs are right where the reference has them too, and wrong elsewhere.
        errors[~np.isfinite(errors)] = np.inf
        errors[(actual == reference) | (np.isnan(actual) & np.isnan(reference))] = 0.0
    return errors


def _least_scale(reference: NDArray[Any]) -> float:
    """Smallest scale of errors: the root mean square of the reference, or 1 of zeros.

    Only finite numbers count.
    """
    sizes = np.abs(reference).astype(np.float64, copy=False)
    largest = float(np.max(sizes, initial=0.0))
    if not np.isfinite(largest):
        sizes = sizes[np.isfinite(sizes)]
        largest = float(np.max(sizes, initial=0.0))
    return _rms(sizes, largest) if largest else 1.0


def _rms(sizes: NDArray[Any], largest: float) -> float:
    """The root mean square of sizes, of which the largest is not 0."""
    # Divided before they are squared where something would overflow or vanish.
    unit = 1.0 if _SQUARED_AT_LEAST < largest < 1 / _SQUARED_AT_LEAST else largest
    shares = sizes if unit == 1.0 else sizes / unit
    return unit * math.sqrt(_sum_of_squares(shares) / shares.size)


def _sum_of_squares(numbers: NDArray[Any]) -> float:
    # Without a BLAS, whose threads would still wait actively when the case is timed.
    return float(np.einsum("i,i->", numbers, numbers))
