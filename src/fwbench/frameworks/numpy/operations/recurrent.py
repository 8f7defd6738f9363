"""NumPy: recurrent layers, which it does not have."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {}

GAPS: tuple[Gap, ...] = tuple(
    Gap("numpy has no recurrent layers", name) for name in ("rnn", "lstm", "gru")
)
