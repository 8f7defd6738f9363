"""PyTorch: sorting and searching."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    # It has the order, too.
    "sort": lambda torch: lambda x: torch.sort(x, 1)[0],
    "argsort": Call("argsort", dim=1),
    "top_k": Call("topk", k=5),
    "unique": "unique",
    "searchsorted": "searchsorted",
}

GAPS: tuple[Gap, ...] = ()
