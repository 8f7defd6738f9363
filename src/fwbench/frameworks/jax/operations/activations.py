"""JAX: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "nn.sigmoid",
    "relu": "nn.relu",
    "tanh": "numpy.tanh",
    "softplus": "nn.softplus",
    "softsign": "nn.soft_sign",
    "gelu": Call("nn.gelu", approximate=False),
    "gelu_tanh": Call("nn.gelu", approximate=True),
    "elu": "nn.elu",
    "selu": "nn.selu",
    "leaky_relu": Call("nn.leaky_relu", negative_slope=0.25),
    "silu": "nn.silu",
    "hard_sigmoid": "nn.hard_sigmoid",
    "log_sigmoid": "nn.log_sigmoid",
}

GAPS: tuple[Gap, ...] = ()
