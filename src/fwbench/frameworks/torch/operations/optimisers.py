"""PyTorch: optimisers, the objects of ``torch.optim`` with the options that they have by default.

On the CPU they compute array by array.
"""

from __future__ import annotations

from typing import Any

import torch

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.optimisers import (
    BETA1,
    BETA2,
    DECAY,
    MOMENTUM,
    RATE,
    RHO,
    TINY,
)

#: Of the steps before: so many that Adam's corrections of its bias are 1.
_STEPS = 1_000_000.0


class _Steps:
    """Steps of an optimiser; the first one makes it, of the arrays that all of them get.

    Args:
        optimiser: the class.
        states: what it calls the arrays behind the gradients.
        options: of the optimiser.
    """

    def __init__(self, optimiser: Any, states: tuple[str, ...], options: dict[str, Any]) -> None:
        self._new = optimiser
        self._states = states
        self._options = options
        self._optimiser: Any = None

    def __call__(self, x: Any, g: Any, *arrays: Any) -> None:
        """One step, which overwrites weights and state."""
        if self._optimiser is None:
            self._optimiser = self._new([x], lr=RATE, **self._options)
            x.grad = g
            step = torch.tensor(_STEPS)
            state = zip(self._states, arrays, strict=True)
            self._optimiser.state[x].update(state, step=step)
        self._optimiser.step()


def _steps(name: str, *states: str, **options: Any) -> Implementation:
    return lambda torch: _Steps(getattr(torch.optim, name), states, options)


_ADAM = {"betas": (BETA1, BETA2), "eps": TINY}

OPERATIONS: Table = {
    "sgd": _steps("SGD"),
    "momentum": _steps("SGD", "momentum_buffer", momentum=MOMENTUM),
    "nesterov": _steps("SGD", "momentum_buffer", momentum=MOMENTUM, nesterov=True),
    "adam": _steps("Adam", "exp_avg", "exp_avg_sq", **_ADAM),
    "adamw": _steps("AdamW", "exp_avg", "exp_avg_sq", weight_decay=DECAY, **_ADAM),
    "rmsprop": _steps("RMSprop", "square_avg", alpha=RHO, eps=TINY),
    "adagrad": _steps("Adagrad", "sum", eps=TINY),
}

GAPS: tuple[Gap, ...] = (Gap("torch has no FTRL", "ftrl"),)
