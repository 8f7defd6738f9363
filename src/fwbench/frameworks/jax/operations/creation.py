"""JAX: new arrays that are not made of host data."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "zeros_like": "numpy.zeros_like",
    "arange": lambda jax, n: lambda x: jax.numpy.arange(n, dtype="int32"),
}

GAPS: tuple[Gap, ...] = ()
