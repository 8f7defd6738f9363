"""MXNet: optimisers, by its operators, which write into the weights and change the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwbench.frameworks.layout import Arrays, Layout
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.optimisers import (
    BETA1,
    BETA2,
    DECAY,
    L1,
    MOMENTUM,
    RATE,
    RHO,
    TINY,
)

_ADAM = {"beta1": BETA1, "beta2": BETA2, "epsilon": TINY}


def _operator(name: str, **options: Any) -> Implementation:
    """An implementation by an operator that has the weights for its output."""

    def implementation(F: Any) -> Callable[..., None]:
        update = getattr(F, name)

        def step(x: Any, *others: Any) -> None:
            update(x, *others, out=x, lr=RATE, **options)

        return step

    return implementation


def _adagrad(F: Any) -> Callable[..., None]:
    """As ``mx.optimizer.AdaGrad`` has it: the operator is for sparse gradients alone."""

    def step(x: Any, g: Any, v: Any) -> None:
        v += F.square(g)
        x -= RATE * (g / F.sqrt(v + TINY))

    return step


def _adamw(F: Any) -> Callable[..., None]:
    """What gradients are multiplied by is an array, always in float32."""
    scale = F.ones((1,))

    def step(x: Any, g: Any, m: Any, v: Any) -> None:
        # Its decay is not multiplied by the rate.
        F.contrib.adamw_update(x, g, m, v, scale, out=x, lr=RATE, eta=1.0, wd=RATE * DECAY, **_ADAM)

    return step


def _scaled(factor: float) -> Callable[[Arrays], list[Any]]:
    """The last array multiplied."""
    return lambda arrays: [*arrays[:-1], (factor * arrays[-1]).astype(arrays[-1].dtype)]


#: A velocity that has the rate in it, and its sign.
_VELOCITY = Layout(
    place=_scaled(-RATE),
    restore=_scaled(-1 / RATE),
    place_results=_scaled(-RATE),
    restore_results=_scaled(-1 / RATE),
)

OPERATIONS: Table = {
    "sgd": _operator("sgd_update", wd=0.0),
    "momentum": Laid(_operator("sgd_mom_update", momentum=MOMENTUM, wd=0.0), _VELOCITY),
    "nesterov": Laid(_operator("nag_mom_update", momentum=MOMENTUM, wd=0.0), _VELOCITY),
    "adam": _operator("adam_update", wd=0.0, **_ADAM),
    "adamw": _adamw,
    "rmsprop": _operator("rmsprop_update", gamma1=RHO, epsilon=TINY, wd=0.0),
    "adagrad": _adagrad,
    "ftrl": _operator("ftrl_update", lamda1=L1, beta=0.0, wd=0.0),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet's symbols overwrite no weights", name, execution="hybridize") for name in OPERATIONS
)
