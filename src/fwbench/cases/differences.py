"""Central differences of a reference: what a gradient must come to along a direction.

A complex number is two real ones, here as in :attr:`fwbench.Framework.conjugates`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Step of the difference, and what it is off by at most, for references of order one.
_STEP = 1e-5
ERROR = 1e-8


def slope(
    reference: Callable[..., Sequence[NDArray[Any]]],
    inputs: Sequence[NDArray[Any]],
    position: int,
    direction: NDArray[Any],
    cotangents: Sequence[NDArray[Any]],
) -> float:
    """The slope of the results, weighted by the cotangents, along a direction.

    Args:
        reference: the operation in NumPy; returns its results.
        inputs: all of them.
        position: of the one that is moved.
        direction: where to.
        cotangents: an array for each result.
    """
    ends = []
    for step in (_STEP, -_STEP):
        moved = [*inputs[:position], inputs[position] + step * direction, *inputs[position + 1 :]]
        ends.append([wide(result) for result in reference(*moved)])
    differences = [
        product(cotangent, ahead - behind)
        for cotangent, ahead, behind in zip(cotangents, *ends, strict=True)
    ]
    return sum(differences) / (2 * _STEP)


def signs(like: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """A random direction: 1 or -1 for every number, and for imaginary parts.

    Args:
        like: has its shape, and is complex where it is.
        rng: draws it.
    """
    drawn = np.copysign(1.0, rng.standard_normal(like.shape))
    if np.iscomplexobj(like):
        return drawn + 1j * np.copysign(1.0, rng.standard_normal(like.shape))
    return drawn


def product(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The scalar product of two arrays as vectors of real numbers.

    Args:
        left: one of them.
        right: the other one.
    """
    return float(np.sum((np.conj(left) if np.iscomplexobj(left) else left) * right).real)


def wide(numbers: NDArray[Any]) -> NDArray[Any]:
    """The numbers in float64, or in complex128."""
    return np.asarray(numbers, dtype=np.result_type(numbers, np.float64))
