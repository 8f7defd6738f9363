"""Central differences of a reference: what a gradient must come to along a direction.

A complex number is two real ones, here as in :attr:`fwbench.Framework.conjugates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Random directions along which gradients are compared.
_DIRECTIONS = 3

#: With this seed no two of the first four elements are moved alike in all of them, whichever of
#: three inputs they are of: of an input that is no larger, errors that cancel in one direction show
#: in another.
_SEED = 302

#: Makes of a random direction the one along which a gradient is compared.
Along = Callable[[NDArray[Any]], NDArray[Any]]

#: Step of the difference, and what it is off by at most, for references of order one.
_STEP = 1e-5
ERROR = 1e-8


def directions(position: int, like: NDArray[Any], along: Along) -> Iterator[NDArray[Any]]:
    """The directions in which an input is moved, the same each time."""
    rng = np.random.default_rng((_SEED, position))
    for _ in range(_DIRECTIONS):
        yield along(signs(like, rng))


def slopes(
    reference: Callable[..., Sequence[NDArray[Any]]],
    inputs: Sequence[NDArray[Any]],
    position: int,
    cotangents: Sequence[NDArray[Any]],
    along: Along,
) -> list[float]:
    """The slopes of the results, weighted by the cotangents, along :func:`directions`.

    Args:
        cotangents: an array for each result.
    """
    return [
        slope(reference, inputs, position, direction, cotangents)
        for direction in directions(position, inputs[position], along)
    ]


def slope(
    reference: Callable[..., Sequence[NDArray[Any]]],
    inputs: Sequence[NDArray[Any]],
    position: int,
    direction: NDArray[Any],
    cotangents: Sequence[NDArray[Any]],
) -> float:
    """The slope of the results, weighted by the cotangents, along a direction.

    Args:
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
    """
    if np.iscomplexobj(like):
        return _signs(like.shape, rng) + 1j * _signs(like.shape, rng)
    return _signs(like.shape, rng)


def _signs(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    count = math.prod(shape)
    drawn = np.frombuffer(rng.bytes((count + 7) // 8), np.uint8)
    return (2.0 * np.unpackbits(drawn, count=count) - 1.0).reshape(shape)


def product(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The scalar product of two arrays as vectors of real numbers."""
    conjugated = np.conj(left) if np.iscomplexobj(left) else left
    # Without a BLAS, whose threads would still wait actively when the case is timed.
    return float(np.einsum("i,i->", np.ravel(conjugated), np.ravel(right)).real)


def wide(numbers: NDArray[Any]) -> NDArray[Any]:
    """The numbers in float64, or in complex128."""
    return np.asarray(numbers, dtype=np.result_type(numbers, np.float64))
