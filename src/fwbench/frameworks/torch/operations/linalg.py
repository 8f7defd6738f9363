"""PyTorch: vectors and matrices."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "flatten",
    "l2_normalize": "nn.functional.normalize",
}

GAPS: tuple[Gap, ...] = ()
