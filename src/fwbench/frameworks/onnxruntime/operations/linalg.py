"""ONNX Runtime: vectors and matrices."""

from __future__ import annotations

import numpy as np

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "dot": "MatMul",
    "gemm": "MatMul",
    "flatten": lambda op: lambda x: op.Reshape(x, np.array([-1], np.int64)),
    "gemv": "MatMul",
    "outer": Call("Einsum", equation="i,j->ij"),
    "gemm_nn": "MatMul",
    "gemm_tn": Call("Gemm", transA=1),
    "gemm_nt": Call("Gemm", transB=1),
    "batch_gemm": "MatMul",
    "einsum": Call("Einsum", equation="bmk,bnk->bmn"),
    "linear": lambda op, n: lambda x, w, b: op.Gemm(x, w, b, transB=1),
}


GAPS: tuple[Gap, ...] = ()
