"""PyTorch: new arrays that are not made of host data."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "zeros_like": "zeros_like",
    "arange": lambda torch, n: lambda x: torch.arange(n, dtype=torch.int32, device=x.device),
}

GAPS: tuple[Gap, ...] = ()
