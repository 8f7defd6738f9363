"""PyTorch's functions for fwbench's operations: paths below ``torch``."""

from __future__ import annotations

from fwbench.frameworks.table import Table

OPERATIONS: Table = {
    "sigmoid": "sigmoid",
    "relu": "relu",
    "tanh": "tanh",
    "softplus": "nn.functional.softplus",
    "softsign": "nn.functional.softsign",
    "gelu": "nn.functional.gelu",
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "flatten",
    "l2_normalize": "nn.functional.normalize",
    "noop": lambda torch: lambda x: x,
}
