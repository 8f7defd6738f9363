"""TensorFlow: optimisers, by its kernels, which change variables in place.

Keras's optimisers are programs of several smaller operations, and keep a count of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.optimisers import (
    BETA1,
    BETA2,
    L1,
    MOMENTUM,
    RATE,
    RHO,
    TINY,
)


def _in(tf: Any, dtype: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers in the dtype of the weights, which kernels want and graphs do not make."""
    return {
        name: tf.constant(value, dtype) if isinstance(value, float) else value
        for name, value in options.items()
    }


def _kernel(name: str, gradient: str, *states: str, **options: Any) -> Implementation:
    """An implementation by ``tf.raw_ops.ResourceApply<name>``.

    Args:
        name: of the kernel.
        gradient: what it calls the gradients.
        states: what it calls the variables of the state.
        options: its other arguments.
    """

    def implementation(tf: Any) -> Callable[..., None]:
        apply = getattr(tf.raw_ops, f"ResourceApply{name}")

        def step(x: Any, g: Any, *variables: Any) -> None:
            handles = {key: of.handle for key, of in zip(states, variables, strict=True)}
            apply(var=x.handle, **handles, **{gradient: g}, **_in(tf, g.dtype, options))

        return step

    return implementation


def _rmsprop(tf: Any) -> Callable[..., None]:
    """The kernel has a momentum, too: its variable is made by the first call, outside of graphs."""
    momentum: list[Any] = []

    def step(x: Any, g: Any, v: Any) -> None:
        if not momentum:
            with tf.init_scope():
                momentum.append(tf.Variable(tf.zeros(x.shape, x.dtype)))
        options = _in(tf, g.dtype, {"lr": RATE, "rho": RHO, "momentum": 0.0, "epsilon": TINY})
        tf.raw_ops.ResourceApplyRMSProp(
            var=x.handle, ms=v.handle, mom=momentum[0].handle, grad=g, **options
        )

    return step


#: So late that its corrections of the bias are 1.
_LATE = {"beta1_power": 0.0, "beta2_power": 0.0}

OPERATIONS: Table = {
    "sgd": _kernel("GradientDescent", "delta", alpha=RATE),
    "momentum": _kernel("Momentum", "grad", "accum", lr=RATE, momentum=MOMENTUM),
    "nesterov": _kernel("Momentum", "grad", "accum", lr=RATE, momentum=MOMENTUM, use_nesterov=True),
    "adam": _kernel(
        "Adam", "grad", "m", "v", lr=RATE, beta1=BETA1, beta2=BETA2, epsilon=TINY, **_LATE
    ),
    "rmsprop": _rmsprop,
    "adagrad": _kernel("AdagradV2", "grad", "accum", lr=RATE, epsilon=TINY),
    "ftrl": _kernel("Ftrl", "grad", "linear", "accum", lr=RATE, l1=L1, l2=0.0, lr_power=-0.5),
}

GAPS: tuple[Gap, ...] = (
    Gap("tensorflow has no kernel of AdamW; Keras composes it of several operations", "adamw"),
)
