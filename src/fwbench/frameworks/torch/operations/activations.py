"""PyTorch: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "sigmoid",
    "relu": "relu",
    "tanh": "tanh",
    "softplus": "nn.functional.softplus",
    "softsign": "nn.functional.softsign",
    "gelu": "nn.functional.gelu",
}

GAPS: tuple[Gap, ...] = ()
