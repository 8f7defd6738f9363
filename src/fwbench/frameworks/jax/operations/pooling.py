"""JAX: pooling, which is a reduction of windows."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _max_pool(x: Any, *kernel: int) -> Any:
    strides = (1, *(2 for _ in kernel), 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, *kernel, 1), strides, "VALID")


def _avg_pool2d(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


OPERATIONS: Table = {
    "max_pool2d": lambda jax: lambda x: _max_pool(x, 2, 2),
    "max_pool2d_3x3_s2": lambda jax: lambda x: _max_pool(x, 3, 3),
    "avg_pool2d": lambda jax: _avg_pool2d,
    "global_avg_pool": Call("numpy.mean", axis=(1, 2), keepdims=True),
    "max_pool1d": lambda jax: lambda x: _max_pool(x, 2),
}

GAPS: tuple[Gap, ...] = ()
