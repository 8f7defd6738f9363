"""NumPy: optimisers, which it does not have."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {}

GAPS: tuple[Gap, ...] = tuple(
    Gap("numpy has no optimisers", name)
    for name in ("sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "ftrl")
)
