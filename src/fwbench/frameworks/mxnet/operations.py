"""MXNet's functions for fwbench's operations: paths below ``mx.nd``, and below ``mx.sym`` alike."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "sigmoid",
    "relu": "relu",
    "tanh": "tanh",
    "softplus": Call("Activation", act_type="softrelu"),
    "softsign": "softsign",
    "gelu": Call("LeakyReLU", act_type="gelu"),
    "dot": "dot",
    "gemm": "dot",
    # The operator copies; the method of an NDArray (not of a symbol) would return a view.
    "flatten": Call("reshape", shape=(-1,)),
    "l2_normalize": "L2Normalization",
    "noop": lambda F: lambda x: x,
}

GAPS = (
    *(
        Gap("mxnet has no float16 product on the CPU", operation, dtype="float16", device="cpu")
        for operation in ("dot", "gemm")
    ),
    Gap("mxnet computes its gelu in float32, whatever the dtype", "gelu", dtype="float64"),
)
