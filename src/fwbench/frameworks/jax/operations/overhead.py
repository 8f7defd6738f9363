"""JAX: no operation."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "noop": lambda jax: lambda x: x,
}

GAPS: tuple[Gap, ...] = ()
