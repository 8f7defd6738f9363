"""Random numbers: of every common distribution, in random order, and dropout.

Every call draws new numbers with the framework's own generator, in the state that the call before
has left; a framework without such a state splits a key in every call, as its users do. What is
drawn depends on the framework: :class:`fwbench.workloads.operation.Moments` says what does not.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import exp, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import sizes_of
from fwbench.workloads.operation import Moments, Operation, discrete, family
from fwbench.workloads.operations.vectors import off_zero
from fwbench.workloads.workload import Cost

Arrays = tuple[NDArray[Any], ...]

_SIZES = sizes_of("random")["numbers"]

#: The share of numbers that dropout drops: the usual one, and exact in every dtype.
DROPPED = 0.5


def _single_number(_size: int, _rng: np.random.Generator) -> Arrays:
    """An array with the dtype and the device of the numbers to draw, and nothing else."""
    return (np.ones(1),)


def _same(low: float, high: float, size: int, rng: np.random.Generator) -> Arrays:
    """A parameter of the distribution for every number, the same for all."""
    return (np.full(size, rng.uniform(low, high)),)


def _random(
    name: str,
    moments: Callable[..., Moments],
    inputs: Callable[[int, np.random.Generator], Arrays] = _single_number,
    *,
    flops: int,
    operand: Callable[[int], int] = lambda _: 1,
    parameters: Callable[[int], tuple[int, ...]] = lambda n: (n,),
) -> Operation:
    """``n`` random numbers.

    FLOPs are those that make the distribution of uniform numbers; the integer arithmetic of the
    generator is not counted. An operand is read and the numbers are written.
    """
    return Operation(
        name=name,
        inputs=inputs,
        reference=lambda x, n=None: np.zeros(x.size if n is None else n),
        sizes=_SIZES,
        cost=lambda n: Cost(flops=float(flops * n), elements=float(operand(n) + n)),
        differentiable=False,
        moments=moments,
        parameters=parameters,
    )


#: A random number for each element of the operand.
_of_each = partial(_random, operand=lambda n: n, parameters=lambda _: ())


def _poisson(_size: int, rates: NDArray[Any]) -> Moments:
    counts = range(60)  # at rates below 6 one in 1e40 is larger
    rate = float(rates[0])
    return discrete(counts, [exp(-rate) * rate**k / factorial(k) for k in counts])


def _gamma(_size: int, alpha: NDArray[Any]) -> Moments:
    shape = float(alpha[0])
    return Moments(shape, shape, 3.0 + 6.0 / shape, lowest=0.0)


def _uniformly(values: Sequence[int], **others: Any) -> Moments:
    return discrete(values, np.full(len(values), 1.0 / len(values)).tolist(), **others)


def _dropout(_size: int, _x: NDArray[Any]) -> Moments:
    """Factors by which every element was multiplied."""
    kept = 1.0 - DROPPED
    return discrete((0.0, 1.0 / kept), (DROPPED, kept), drawn=lambda y, x: y / x)


RANDOM = family(
    "random",
    # What weights are initialised with, and what most of the others are made of.
    ("random_normal",),
    # From 0 to 1.
    _random("random_uniform", lambda *_: Moments(1 / 2, 1 / 12, 9 / 5, 0.0, 1.0), flops=1),
    _random("random_normal", lambda *_: Moments(0.0, 1.0, 3.0), flops=4),
    # 1 with the probability that the operand has, 0 otherwise.
    _of_each(
        "random_bernoulli",
        lambda _, p: discrete((0, 1), (1 - p[0], p[0])),
        partial(_same, 0.2, 0.8),
        flops=1,
    ),
    # From 0 to 99, each with the same probability, in int32.
    _random("random_integers", lambda *_: _uniformly(range(100)), flops=1),
    # Of the shape that the operand has and the scale 1.
    _of_each("random_gamma", _gamma, partial(_same, 1.5, 2.5), flops=10),
    # At the rate that the operand has.
    _of_each("random_poisson", _poisson, partial(_same, 3.0, 5.0), flops=10),
    # At the rate 2, so that the mean is a half.
    _random("random_exponential", lambda *_: Moments(1 / 2, 1 / 4, 9.0, 0.0), flops=2),
    # The operand, 0 to n - 1 in int32, in random order.
    _of_each(
        "random_shuffle",
        lambda n, _: _uniformly(range(n), distinct=True),
        lambda n, _: (np.arange(n, dtype=np.int32),),
        flops=0,
    ),
    # The number of one of four categories, with the probabilities that the operand has.
    _random(
        "random_categorical",
        lambda _, p: discrete(range(4), p / np.sum(p)),
        lambda _, rng: (rng.dirichlet([8.0] * 4),),
        flops=2,
        operand=lambda _: 4,
    ),
    # 0 in place of an element with the probability 0.5, and the others divided by 0.5.
    _of_each("dropout", _dropout, lambda n, rng: (off_zero(n, rng),), flops=2),
)
