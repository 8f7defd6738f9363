"""Activations, element by element, of a vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Sizes
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Vectors = tuple[NDArray[Any], ...]

_QUICK = (100, 10_000, 1_000_000)
_FULL = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
#: Most of those that the report of 2020 measured; newer activations have no paper sizes.
_PAPER = tuple(range(500, 57_501, 3_000))


def _vector(size: int, rng: np.random.Generator) -> Vectors:
    """Normal around 0, kept off it: the gradient of relu is not defined there."""
    x = rng.standard_normal(size)
    return (x + np.copysign(0.1, x),)


def _elementwise(flops: int, elements: int, size: int) -> Cost:
    return Cost(flops=float(flops * size), elements=float(elements * size))


def _activation(
    name: str,
    reference: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    flops: int,
    gradient_flops: int,
    paper: tuple[int, ...] = (),
) -> Operation:
    """An activation: reads x and writes y; its gradient reads x and g and writes one more."""
    return Operation(
        name=name,
        inputs=_vector,
        reference=reference,
        sizes=Sizes(quick=_QUICK, paper=paper, full=_FULL),
        cost=partial(_elementwise, flops, 2),
        backward_cost=partial(_elementwise, flops + gradient_flops, 5),
    )


ACTIVATIONS = family(
    "activations",
    ("sigmoid", "relu", "tanh", "softplus", "softsign", "gelu"),
    _activation(
        "sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x)), flops=4, gradient_flops=3, paper=_PAPER
    ),
    _activation("relu", lambda x: np.maximum(x, 0.0), flops=1, gradient_flops=1, paper=_PAPER),
    _activation("tanh", np.tanh, flops=1, gradient_flops=3, paper=_PAPER),
    _activation(
        "softplus",
        lambda x: np.logaddexp(0.0, x),
        flops=3,
        gradient_flops=5,
        paper=tuple(range(500, 19_501, 1_000)),
    ),
    _activation(
        "softsign", lambda x: x / (1.0 + np.abs(x)), flops=3, gradient_flops=5, paper=_PAPER
    ),
    # x times the normal distribution function, not its approximation by tanh.
    _activation(
        "gelu",
        lambda x: 0.5 * x * (1.0 + np.fromiter(map(math.erf, x / math.sqrt(2)), float, len(x))),
        flops=5,
        gradient_flops=6,
    ),
)
