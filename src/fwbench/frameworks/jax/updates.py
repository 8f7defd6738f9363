"""Optimisers by their formulas, over trees of parameters; JAX has none of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import tree

from fwbench.workloads.objective import SGD, Adam, Optimizer, RMSprop

#: Each like the parameters: what an optimiser keeps of earlier gradients.
Moments = tuple[Any, ...]


@dataclass(frozen=True)
class Update:
    """An optimiser's step.

    Attributes:
        moments: how many it keeps.
        decrease: from the gradients, the moments, the learning rate and the number of the step,
            from 1, to what is subtracted from the parameters and the new moments.
    """

    moments: int
    decrease: Callable[[Any, Moments, Any, Any], tuple[Any, Moments]]

    def start(self, parameters: Any) -> Moments:
        """The moments before the first step."""
        return tuple(tree.map(jnp.zeros_like, parameters) for _ in range(self.moments))


def update_of(optimizer: Optimizer) -> Update:
    """An optimiser's step, with its constants."""
    return _UPDATES[type(optimizer)](optimizer)


def _adam(adam: Adam) -> Update:
    """Kingma and Ba 2015, algorithm 1 in the order that the end of section 2 gives."""

    def decrease(gradients: Any, moments: Moments, rate: Any, step: Any) -> tuple[Any, Moments]:
        first = _average(adam.beta_1, moments[0], gradients)
        second = _average(adam.beta_2, moments[1], tree.map(jnp.square, gradients))
        corrected = rate * jnp.sqrt(_weight(adam.beta_2, step)) / _weight(adam.beta_1, step)
        decreases = tree.map(
            lambda mean, square: corrected * mean / (jnp.sqrt(square) + adam.epsilon),
            first,
            second,
        )
        return decreases, (first, second)

    return Update(2, decrease)


def _rmsprop(rmsprop: RMSprop) -> Update:
    def decrease(gradients: Any, moments: Moments, rate: Any, _: Any) -> tuple[Any, Moments]:
        squares = _average(rmsprop.rho, moments[0], tree.map(jnp.square, gradients))
        decreases = tree.map(
            lambda gradient, square: rate * gradient / jnp.sqrt(square + rmsprop.epsilon),
            gradients,
            squares,
        )
        return decreases, (squares,)

    return Update(1, decrease)


def _sgd(sgd: SGD) -> Update:
    def decrease(gradients: Any, moments: Moments, rate: Any, _: Any) -> tuple[Any, Moments]:
        if not moments:
            return tree.map(lambda gradient: rate * gradient, gradients), ()
        velocities = tree.map(lambda v, gradient: sgd.momentum * v + gradient, *moments, gradients)
        return tree.map(lambda v: rate * v, velocities), (velocities,)

    return Update(1 if sgd.momentum else 0, decrease)


def _average(decay: float, averages: Any, values: Any) -> Any:
    """Moving averages after one more value."""
    return tree.map(lambda mean, value: decay * mean + (1.0 - decay) * value, averages, values)


def _weight(decay: float, step: Any) -> Any:
    """``1 - decay**step``: what a moving average's values weigh together."""
    return -jnp.expm1(step * math.log(decay))


_UPDATES: dict[type[Any], Callable[[Any], Update]] = {
    Adam: _adam,
    RMSprop: _rmsprop,
    SGD: _sgd,
}
