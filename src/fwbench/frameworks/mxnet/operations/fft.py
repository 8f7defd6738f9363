"""MXNet: Fourier transforms."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {}

GAPS: tuple[Gap, ...] = ()
