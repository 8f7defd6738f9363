"""NumPy: vectors and matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS


def _l2_normalize(x: NDArray[Any]) -> NDArray[Any]:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


OPERATIONS: Table = {
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "ravel",
    "l2_normalize": lambda np: _l2_normalize,
    "gemv": "matmul",
    "outer": "outer",
    "gemm_nn": "matmul",
    # Transposed views, which BLAS reads as they are.
    "gemm_tn": lambda np: lambda x, y: np.matmul(x.T, y),
    "gemm_nt": lambda np: lambda x, y: np.matmul(x, y.T),
    "batch_gemm": "matmul",
    "einsum": lambda np: partial(np.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("tensordot", axes=2),
    "linear": lambda np, n: lambda x, weight, bias: np.matmul(x, weight.T) + bias,
    "cholesky": "linalg.cholesky",
    "solve": "linalg.solve",
    "inverse": "linalg.inv",
    "slogdet": lambda np: lambda x: np.linalg.slogdet(x)[1],
    "svd_values": Call("linalg.svd", compute_uv=False),
    "svd": Call("linalg.svd", full_matrices=False),
    "qr": "linalg.qr",
    "lq": Laid(
        lambda np: lambda x: np.linalg.qr(x.T),
        Layout(restore_results=lambda results: [results[1].T, results[0].T]),
    ),
    "eigh": "linalg.eigh",
}

GAPS: tuple[Gap, ...] = (
    Gap("numpy has no float8", "scaled_gemm"),
    # SciPy has it.
    Gap("numpy solves systems with full matrices only", "triangular_solve"),
    *(
        Gap("numpy's LAPACK has no float16", operation.name, dtype="float16")
        for operation in DECOMPOSITIONS
    ),
)
