"""Operations on vectors, element by element: what their operands, sizes and costs have in common.

Operands are drawn so that they have the same meaning in every dtype: what float16 and bfloat16
round them to is not on a kink of the function, and no two of them tie where that matters.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Cost

#: ``draw(size, rng)`` returns one operand, a vector.
Draw = Callable[[int, np.random.Generator], NDArray[Any]]

#: Their sizes, but for those of the report of 2020.
_SIZES = sizes_of("elementwise")["vectors"]

#: The distance that operands keep from kinks.
_DISTANCE = 0.1


def normal(*shapes: Callable[[Any], tuple[int, ...]]) -> Callable[..., tuple[NDArray[Any], ...]]:
    """Operands of standard normal numbers, of the shapes that follow from a size."""
    return lambda size, rng: tuple(rng.standard_normal(shape(size)) for shape in shapes)


def square(size: int) -> tuple[int, int]:
    """Shape of a matrix with as many rows as columns."""
    return size, size


def numbers(size: Shape) -> tuple[int, ...]:
    """Shape of an array with the lengths that a size has."""
    return tuple(size.values())


def off_zero(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Normal around 0, kept off it: the gradient of relu is not defined there."""
    x = rng.standard_normal(size)
    return x + np.copysign(_DISTANCE, x)


def positive(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform from 1/2 to 2, where logarithms, roots and powers are of order one."""
    return rng.uniform(0.5, 2.0, size)


def between(*ends: float) -> Draw:
    """Numbers in every piece of the line, and none near where two pieces meet."""
    low, high = np.array(ends[:-1]) + _DISTANCE, np.array(ends[1:]) - _DISTANCE

    def draw(size: int, rng: np.random.Generator) -> NDArray[Any]:
        piece = rng.integers(len(low), size=size)
        return rng.uniform(low[piece], high[piece])

    return draw


def elementwise(
    name: str,
    reference: Callable[..., NDArray[Any]],
    *draws: Draw,
    flops: int = 1,
    gradient_flops: int | None = None,
    reads: int | None = None,
    paper: tuple[int, ...] = (),
    **declared: Any,
) -> Operation:
    """An operation that computes each element of its result of the same elements of its operands.

    Args:
        draws: one for each operand; without any, one operand that keeps off zero.
        flops: for an element of the result; a function such as exp counts as one.
        gradient_flops: those that all gradients take in addition; None where there is no gradient.
        reads: how many of the operands and the result the gradient needs, in addition to the
            gradient of the result; None for as many as there are operands.
        paper: the sizes that the report of 2020 has.
        declared: further arguments of :class:`Operation`.
    """
    draws = draws or (off_zero,)
    forward = len(draws) + 1
    gradients = len(declared.get("variables", draws))
    # Forward; then the gradient of the result and what is read, and one gradient a variable.
    backward = forward + 1 + (len(draws) if reads is None else reads) + gradients
    differentiable = gradient_flops is not None
    return Operation(
        name=name,
        inputs=lambda size, rng: tuple(draw(size, rng) for draw in draws),
        reference=reference,
        sizes=replace(_SIZES, paper=paper),
        cost=partial(_cost, flops, forward),
        backward_cost=partial(_cost, flops + (gradient_flops or 0), backward)
        if differentiable
        else None,
        differentiable=differentiable,
        **declared,
    )


def _cost(flops: int, elements: int, size: int) -> Cost:
    return Cost(flops=float(flops * size), elements=float(elements * size))
