"""TensorFlow: sorting and searching."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sort": Call("sort", axis=1),
    "argsort": Call("argsort", axis=1),
    "top_k": Call("math.top_k", k=5),
    # A hash table, in the order of first occurrence; the other frameworks sort.
    "unique": lambda tf: lambda x: tf.unique(x)[0],
    "searchsorted": "searchsorted",
}

GAPS: tuple[Gap, ...] = ()
