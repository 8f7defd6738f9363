"""MXNet: activations."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _gelu_tanh(tanh: Any, x: Any) -> Any:
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


OPERATIONS: Table = {
    "sigmoid": "sigmoid",
    "relu": "relu",
    "tanh": "tanh",
    "softplus": Call("Activation", act_type="softrelu"),
    "softsign": "softsign",
    "gelu": Call("LeakyReLU", act_type="gelu"),
    "gelu_tanh": lambda F: partial(_gelu_tanh, F.tanh),
    "elu": Call("LeakyReLU", act_type="elu", slope=1.0),
    "selu": Call("LeakyReLU", act_type="selu"),
    "leaky_relu": Call("LeakyReLU", act_type="leaky", slope=0.25),
    "silu": lambda F: lambda x: x * F.sigmoid(x),
    "hard_sigmoid": Call("hard_sigmoid", alpha=1 / 6, beta=0.5),
    "log_sigmoid": lambda F: lambda x: -F.Activation(-x, act_type="softrelu"),
}

GAPS: tuple[Gap, ...] = (
    *(
        Gap(
            f"mxnet computes {operation} in float32, whatever the dtype", operation, dtype="float64"
        )
        for operation in ("gelu", "leaky_relu", "selu", "hard_sigmoid")
    ),
    Gap("mxnet's gradient of selu is wrong where x is negative", "selu", direction="backward"),
)
