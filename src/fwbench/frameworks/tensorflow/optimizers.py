"""The optimisers of Keras with the constants of a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from fwbench.workloads.objective import SGD, Adam, Optimizer, RMSprop


def optimizer(constants: Optimizer) -> Any:
    """Keras' own, which adds epsilon where the definition does.

    Args:
        constants: which, and with what.
    """
    return _OPTIMIZERS[type(constants)](constants)


def _adam(constants: Adam) -> Any:
    return keras.optimizers.Adam(
        constants.learning_rate, constants.beta_1, constants.beta_2, constants.epsilon
    )


def _rmsprop(constants: RMSprop) -> Any:
    return keras.optimizers.RMSprop(
        constants.learning_rate, rho=constants.rho, epsilon=constants.epsilon
    )


def _sgd(constants: SGD) -> Any:
    return keras.optimizers.SGD(constants.learning_rate, momentum=constants.momentum)


_OPTIMIZERS: dict[type[Any], Callable[[Any], Any]] = {
    Adam: _adam,
    RMSprop: _rmsprop,
    SGD: _sgd,
}
