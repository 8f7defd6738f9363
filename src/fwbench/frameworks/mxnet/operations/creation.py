"""MXNet: new arrays that are not made of host data."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "zeros_like": "zeros_like",
    "arange": lambda F, n: lambda x: F.arange(n, dtype="int32", ctx=x.context),
}

GAPS: tuple[Gap, ...] = ()
