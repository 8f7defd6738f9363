"""ONNX Runtime: no operation."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    # A session returns no input itself: it is copied.
    "noop": "Identity",
}


GAPS: tuple[Gap, ...] = ()
