"""Other public ways of ONNX Runtime to compute operations, and why they are not called."""

from __future__ import annotations

import numpy as np

from fwbench.frameworks.layout import CHANNELS_FIRST
from fwbench.frameworks.table import Call, Laid, Table
from fwbench_extras.idioms.table import Idiom, Idioms

_FIRST, _SECOND = (np.array([axis], np.int64) for axis in (0, 1))

_EXPORTED = "PyTorch's exporter writes it"
_NOT_CHOSEN = "exporters write the operator; who runs their graphs does not choose"


def _exported(called: str, alternatives: Table, accepted: str = "") -> Idiom:
    return Idiom(called, _EXPORTED, alternatives, accepted)


IDIOMS: Idioms = {
    # Activations
    "softplus": _exported(
        "Softplus",
        {"Log": lambda op: lambda x: op.Log(op.Add(op.Exp(x), np.float32(1)))},
        _NOT_CHOSEN,
    ),
    "log_sigmoid": _exported(
        "Log", {"Softplus": lambda op: lambda x: op.Neg(op.Softplus(op.Neg(x)))}
    ),
    # Reductions
    "logsumexp": _exported(
        "ReduceLogSumExp",
        {
            "LogSoftmax": lambda op: (
                lambda x: op.Squeeze(
                    op.Slice(op.Sub(x, op.LogSoftmax(x, axis=1)), _FIRST, _SECOND, _SECOND), _SECOND
                )
            )
        },
        _NOT_CHOSEN,
    ),
    # Products
    "dot": _exported(
        "MatMul",
        {"ReduceSum": lambda op: lambda x, y: op.ReduceSum(op.Mul(x, y), keepdims=0)},
        _NOT_CHOSEN,
    ),
    **dict.fromkeys(("gemm", "gemm_nn"), _exported("MatMul", {"Gemm": "Gemm"})),
    "outer": _exported("Mul", {"Einsum": Call("Einsum", equation="i,j->ij")}),
    "einsum": _exported(
        "Einsum",
        {"MatMul": lambda op: lambda x, y: op.MatMul(x, op.Transpose(y, perm=[0, 2, 1]))},
        "the notation is what is measured; batch_gemm is the product without it",
    ),
    # Pooling
    "global_avg_pool": _exported(
        "ReduceMean", {"GlobalAveragePool": Laid("GlobalAveragePool", CHANNELS_FIRST)}
    ),
}
