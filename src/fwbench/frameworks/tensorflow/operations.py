"""TensorFlow's functions for fwbench's operations: paths below ``tf``."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "math.sigmoid",
    "relu": "nn.relu",
    "tanh": "math.tanh",
    "softplus": "math.softplus",
    "softsign": "nn.softsign",
    "gelu": "nn.gelu",
    "dot": Call("tensordot", axes=1),
    "gemm": "linalg.matmul",
    "flatten": Call("reshape", shape=[-1]),
    "l2_normalize": Call("math.l2_normalize", axis=1),
    "noop": lambda tf: lambda x: x,
}

GAPS = (
    Gap("tensorflow's gelu has a constant of float32, whatever the dtype", "gelu", dtype="float64"),
)
