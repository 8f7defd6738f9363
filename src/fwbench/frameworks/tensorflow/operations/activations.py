"""TensorFlow: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "math.sigmoid",
    "relu": "nn.relu",
    "tanh": "math.tanh",
    "softplus": "math.softplus",
    "softsign": "nn.softsign",
    "gelu": "nn.gelu",
}

GAPS: tuple[Gap, ...] = (
    Gap("tensorflow's gelu has a constant of float32, whatever the dtype", "gelu", dtype="float64"),
)
