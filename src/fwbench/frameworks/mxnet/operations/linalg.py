"""MXNet: vectors and matrices."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "dot": "dot",
    "gemm": "dot",
    # The operator copies; the method of an NDArray (not of a symbol) would return a view.
    "flatten": Call("reshape", shape=(-1,)),
    "l2_normalize": "L2Normalization",
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet has no float16 product on the CPU", operation, dtype="float16", device="cpu")
    for operation in ("dot", "gemm")
)
