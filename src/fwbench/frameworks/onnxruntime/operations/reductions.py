"""ONNX Runtime: reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _along(operator: str, axis: int) -> Any:
    """A reduction, whose axes are an input."""
    axes = np.array([axis], np.int64)
    return lambda op: lambda x: getattr(op, operator)(x, axes, keepdims=0)


OPERATIONS: Table = {
    "sum": Call("ReduceSum", keepdims=0),
    "sum_columns": _along("ReduceSum", 0),
    "sum_rows": _along("ReduceSum", 1),
    "mean": _along("ReduceMean", 1),
    "max": _along("ReduceMax", 1),
    "min": _along("ReduceMin", 1),
    "prod": _along("ReduceProd", 1),
    "norm": Call("ReduceL2", keepdims=0),
    "logsumexp": _along("ReduceLogSumExp", 1),
    "cumsum": lambda op: lambda x: op.CumSum(x, np.array(1, np.int64)),
    "argmax": Call("ArgMax", axis=1, keepdims=0),
    "argmin": Call("ArgMin", axis=1, keepdims=0),
}


GAPS: tuple[Gap, ...] = ()
