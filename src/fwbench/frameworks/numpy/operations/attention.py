"""NumPy: attention, which it does not have."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {}

GAPS: tuple[Gap, ...] = tuple(
    Gap("numpy has no attention", name) for name in ("attention", "attention_causal")
)
