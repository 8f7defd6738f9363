"""JAX: vectors and matrices."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _l2_normalize(x: Any) -> Any:
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


OPERATIONS: Table = {
    "dot": "numpy.dot",
    "gemm": "numpy.matmul",
    "flatten": "numpy.ravel",
    "l2_normalize": lambda jax: _l2_normalize,
}

GAPS: tuple[Gap, ...] = ()
