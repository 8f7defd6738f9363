"""MXNet: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "sigmoid",
    "relu": "relu",
    "tanh": "tanh",
    "softplus": Call("Activation", act_type="softrelu"),
    "softsign": "softsign",
    "gelu": Call("LeakyReLU", act_type="gelu"),
}

GAPS: tuple[Gap, ...] = (
    Gap("mxnet computes its gelu in float32, whatever the dtype", "gelu", dtype="float64"),
)
