"""The optimisers of MXNet with the constants of a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxnet as mx

from fwbench.workloads.objective import SGD, Adam, Optimizer, RMSprop


def optimizer(constants: Optimizer, *, lazy: bool = False) -> Any:
    """MXNet's own, which adds epsilon where the definition does.

    Args:
        constants: which, and with what.
        lazy: whether Adam passes over rows without a gradient where gradients are sparse.
    """
    made, arguments = _OPTIMIZERS[type(constants)]
    return made(**arguments(constants, lazy))


class _RMSprop(mx.optimizer.RMSProp):  # type: ignore[misc]
    """MXNet's, whose mean squares are float32 whatever the dtype of the weights."""

    def create_state(self, _: int, weight: Any) -> tuple[Any]:
        """The mean squares of a weight, in its dtype."""
        return (mx.nd.zeros_like(weight),)


def _adam(constants: Adam, lazy: bool) -> dict[str, Any]:
    return {
        "learning_rate": constants.learning_rate,
        "beta1": constants.beta_1,
        "beta2": constants.beta_2,
        "epsilon": constants.epsilon,
        "lazy_update": lazy,
    }


def _rmsprop(constants: RMSprop, _: bool) -> dict[str, Any]:
    return {
        "learning_rate": constants.learning_rate,
        "gamma1": constants.rho,
        "epsilon": constants.epsilon,
    }


def _sgd(constants: SGD, _: bool) -> dict[str, Any]:
    return {"learning_rate": constants.learning_rate, "momentum": constants.momentum}


_OPTIMIZERS: dict[type[Any], tuple[Any, Callable[[Any, bool], dict[str, Any]]]] = {
    Adam: (mx.optimizer.Adam, _adam),
    RMSprop: (_RMSprop, _rmsprop),
    SGD: (mx.optimizer.SGD, _sgd),
}
