"""JAX: sorting and searching."""

from __future__ import annotations

from fwbench.frameworks.jax.operations.indexing import with_int32
from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sort": Call("numpy.sort", axis=1),
    "argsort": Call("numpy.argsort", axis=1),
    "top_k": Call("lax.top_k", k=5),
    "unique": with_int32("numpy.unique"),
    "searchsorted": "numpy.searchsorted",
}

GAPS: tuple[Gap, ...] = (Gap("jit has no shapes that depend on data", "unique", execution="jit"),)
