"""TensorFlow: vectors and matrices."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "dot": Call("tensordot", axes=1),
    "gemm": "linalg.matmul",
    "flatten": Call("reshape", shape=[-1]),
    "l2_normalize": Call("math.l2_normalize", axis=1),
}

GAPS: tuple[Gap, ...] = ()
