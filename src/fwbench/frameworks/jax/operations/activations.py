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
}

GAPS: tuple[Gap, ...] = ()
