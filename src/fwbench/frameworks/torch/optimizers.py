"""The optimisers of ``torch.optim`` with the constants of a training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from fwbench.workloads.objective import SGD, Adam, Optimizer, RMSprop


def optimizer(constants: Optimizer, parameters: Iterable[Any]) -> Any:
    """PyTorch's own, as it is.

    Args:
        constants: which, and with what.
        parameters: that it updates.
    """
    return _OPTIMIZERS[type(constants)](constants, parameters)


def adam(constants: Adam) -> dict[str, Any]:
    """The arguments of Adam, and of SparseAdam."""
    return {
        "lr": constants.learning_rate,
        "betas": (constants.beta_1, constants.beta_2),
        "eps": constants.epsilon,
    }


def _adam(constants: Adam, parameters: Iterable[Any]) -> Any:
    return torch.optim.Adam(parameters, **adam(constants))


def _rmsprop(constants: RMSprop, parameters: Iterable[Any]) -> Any:
    """PyTorch adds epsilon to the root: its own root does there, where v is small, what it must."""
    return torch.optim.RMSprop(
        parameters,
        lr=constants.learning_rate,
        alpha=constants.rho,
        eps=math.sqrt(constants.epsilon),
    )


def _sgd(constants: SGD, parameters: Iterable[Any]) -> Any:
    return torch.optim.SGD(parameters, constants.learning_rate, momentum=constants.momentum)


_OPTIMIZERS: dict[type[Any], Callable[[Any, Iterable[Any]], Any]] = {
    Adam: _adam,
    RMSprop: _rmsprop,
    SGD: _sgd,
}


def make_exact(of: Any, constants: Optimizer) -> None:
    """Let a new optimiser add epsilon where the definition does.

    Args:
        of: PyTorch's optimiser.
        constants: that it was made with.
    """
    _EXACT.get(type(of), _as_it_is)(of, constants)


def _as_it_is(optimizer: Any, constants: Any) -> None:
    """Gradient descent has no epsilon, and SparseAdam adds it where the other frameworks do."""


def _exact_adam(optimizer: Any, constants: Adam) -> None:
    """PyTorch adds epsilon after the bias correction; undone, step by step."""
    steps = 0

    def correct(*_: Any) -> None:
        nonlocal steps
        steps += 1
        for group in optimizer.param_groups:
            group["eps"] = constants.epsilon / math.sqrt(1.0 - constants.beta_2**steps)

    optimizer.register_step_pre_hook(correct)


def _exact_rmsprop(optimizer: Any, constants: RMSprop) -> None:
    """Epsilon inside the root: kept in the mean square, which loses a share of it every step."""
    for group in optimizer.param_groups:
        group["eps"] = 0.0
    lost = constants.epsilon * (1.0 - constants.rho) / constants.rho

    def correct(*_: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state[parameter]
                if not state:
                    state["step"] = torch.zeros(())
                    state["square_avg"] = torch.full_like(parameter, constants.epsilon)
                state["square_avg"].add_(lost)

    optimizer.register_step_pre_hook(correct)


_EXACT: dict[type[Any], Callable[[Any, Any], None]] = {
    torch.optim.Adam: _exact_adam,
    torch.optim.RMSprop: _exact_rmsprop,
}
