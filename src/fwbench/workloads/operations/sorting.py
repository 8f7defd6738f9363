"""Sorting and searching."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Array = NDArray[Any]
Arrays = tuple[Array, ...]

_SIZES = sizes_of("sorting")

#: Number of the largest numbers that are looked for.
_K = 5

#: Bits of mantissa of bfloat16, and how many powers of two operands extend over.
_MANTISSA_BITS, _BINADES = 7, 16


def _distinct(count: int) -> Array:
    """Different numbers, rising, and different in every dtype: all are bfloat16's.

    4096 of them, from -256 to 256, none closer to another than twice the step of the central
    difference that gradients are compared with. More are as far apart, and differ in float32.
    """
    steps = 2**_MANTISSA_BITS
    if count > 2 * steps * _BINADES:
        return np.linspace(-count / 1e4, count / 1e4, count)
    exponents = np.arange(-_BINADES // 2, _BINADES // 2)[:, None]
    positive = np.ravel(2.0**exponents * (1 + np.arange(steps) / steps))
    numbers = np.concatenate([-positive[::-1], positive])
    first = (len(numbers) - count) // 2
    return numbers[first : first + count]


def _shuffled(size: Shape, rng: np.random.Generator) -> Arrays:
    """The same numbers in every row, without ties, which have no order and no gradient."""
    n, m = size.values()
    return (rng.permuted(np.tile(_distinct(m), (n, 1)), axis=1),)


def _pairs(size: int, rng: np.random.Generator) -> Arrays:
    """Whole numbers of 32 bits, nearly all of them twice."""
    return ((rng.permutation(size) // 2).astype(np.int32),)


def _sorted_and_sought(size: Shape, rng: np.random.Generator) -> Arrays:
    return np.sort(rng.standard_normal(size["n"])), rng.standard_normal(size["k"])


def _top(x: Array) -> Arrays:
    order = np.argsort(-x, axis=1)[:, :_K]
    return np.take_along_axis(x, order, 1), order


def _comparisons(n: int, m: int) -> float:
    """Comparisons in n sorts of m numbers, the least of any sort; merging needs nearly that few."""
    return float(n * m * np.log2(m))


def _selections(n: int, m: int) -> float:
    """The least that find the largest of m numbers in order, n times (Knuth, vol. 3, 5.3.3)."""
    return float(n * (m - _K + np.ceil(np.log2(np.arange(m - _K + 2, m + 1)).sum())))


def _sorting(
    name: str,
    reference: Callable[..., Any],
    results: Callable[[Shape], int],
    comparisons: Callable[[int, int], float] = _comparisons,
    *,
    differentiable: bool = False,
) -> Operation:
    """An operation that puts rows in order; a gradient goes back to where the numbers came from."""

    def cost(size: Shape) -> Cost:
        n, m = size.values()
        return Cost(flops=comparisons(n, m), elements=float(n * m + results(size)))

    def backward_cost(size: Shape) -> Cost:
        """Forward; then read the gradient of the result, and write the operand's."""
        n, m = size.values()
        return Cost(flops=comparisons(n, m), elements=2.0 * (n * m + results(size)))

    return Operation(
        name=name,
        inputs=_shuffled,
        reference=reference,
        sizes=_SIZES["rows"],
        cost=cost,
        backward_cost=backward_cost if differentiable else None,
        differentiable=differentiable,
        branching=True,
    )


def _hashed(size: int) -> Cost:
    """No arithmetic is needed to find what is there already."""
    return Cost(flops=0.0, elements=float(size + (size + 1) // 2))


def _bisected(size: Shape) -> Cost:
    n, k = size.values()
    return Cost(flops=float(k * np.ceil(np.log2(n + 1))), elements=float(n + 2 * k))


#: An operation with vectors, and places or whole numbers as its result: without a gradient.
_searching = partial(Operation, differentiable=False, branching=True)

# The others are parts of sorting, or use it.
SORTING = family(
    "sorting",
    ("sort",),
    # Every row, rising.
    _sorting("sort", lambda x: np.sort(x, axis=1), lambda s: s["n"] * s["m"], differentiable=True),
    # The places from which the numbers of a sorted row come.
    _sorting("argsort", lambda x: np.argsort(x, axis=1), lambda s: s["n"] * s["m"]),
    # The five largest numbers of every row, falling, and their places. Places have no gradient.
    _sorting("top_k", _top, lambda s: 2 * _K * s["n"], _selections, differentiable=True),
    # The different ones of whole numbers, in any order: a hash table keeps that of the operand.
    _searching(
        "unique", _pairs, np.unique, _SIZES["vector"], _hashed, compared=lambda x: (np.sort(x),)
    ),
    # The places of numbers among sorted ones.
    _searching("searchsorted", _sorted_and_sought, np.searchsorted, _SIZES["places"], _bisected),
)
