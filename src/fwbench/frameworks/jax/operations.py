"""JAX's functions for fwbench's operations: paths below ``jax``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fwbench.frameworks.table import Call, Table


def _l2_normalize(x: Any) -> Any:
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


OPERATIONS: Table = {
    "sigmoid": "nn.sigmoid",
    "relu": "nn.relu",
    "tanh": "numpy.tanh",
    "softplus": "nn.softplus",
    "softsign": "nn.soft_sign",
    "gelu": Call("nn.gelu", approximate=False),
    "dot": "numpy.dot",
    "gemm": "numpy.matmul",
    "flatten": "numpy.ravel",
    "l2_normalize": lambda jax: _l2_normalize,
    "noop": lambda jax: lambda x: x,
}
