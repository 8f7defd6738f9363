"""NumPy: new arrays that are not made of host data."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "zeros_like": "zeros_like",
    "arange": lambda np, n: lambda x: np.arange(n, dtype=np.int32),
}

GAPS: tuple[Gap, ...] = ()
