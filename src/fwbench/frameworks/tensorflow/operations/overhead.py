"""TensorFlow: no operation."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "noop": lambda tf: lambda x: x,
}

GAPS: tuple[Gap, ...] = ()
