"""ONNX Runtime: indexing."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "gather_rows": Call("Gather", axis=0),
    "embedding": lambda op, n, d: lambda w, i: op.Gather(w, i, axis=0),
    "gather_elements": Call("GatherElements", axis=1),
    "gather_nd": "GatherND",
}


GAPS: tuple[Gap, ...] = ()
