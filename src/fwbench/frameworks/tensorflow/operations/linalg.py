"""TensorFlow: vectors and matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.layout import Arrays, Layout, axes, transposed_factors
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS


def _restored_svd(results: Arrays) -> Any:
    """s, u, v as u, s, v transposed."""
    s, u, v = results
    return [u, s, v.T]


def _placed_svd(results: Arrays) -> Any:
    """u, s, v transposed as s, u, v."""
    u, s, vh = results
    return [s, u, vh.T]


OPERATIONS: Table = {
    "dot": Call("tensordot", axes=1),
    "gemm": "linalg.matmul",
    "flatten": Call("reshape", shape=[-1]),
    "l2_normalize": Call("math.l2_normalize", axis=1),
    "gemv": "linalg.matvec",
    "outer": Call("tensordot", axes=0),
    "gemm_nn": "linalg.matmul",
    "gemm_tn": Call("linalg.matmul", transpose_a=True),
    "gemm_nt": Call("linalg.matmul", transpose_b=True),
    "batch_gemm": "linalg.matmul",
    "einsum": lambda tf: partial(tf.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("tensordot", axes=2),
    # Keras has the weights of a dense layer transposed.
    "linear": Laid(
        lambda tf, n: lambda x, weight, bias: tf.nn.bias_add(tf.linalg.matmul(x, weight), bias),
        axes("", "nk->kn"),
    ),
    "cholesky": "linalg.cholesky",
    "solve": "linalg.solve",
    "triangular_solve": "linalg.triangular_solve",
    "inverse": "linalg.inv",
    "slogdet": lambda tf: lambda x: tf.linalg.slogdet(x)[1],
    "svd_values": Call("linalg.svd", compute_uv=False),
    "svd": Laid("linalg.svd", Layout(place_results=_placed_svd, restore_results=_restored_svd)),
    "qr": "linalg.qr",
    "lq": Laid(
        lambda tf: lambda x: tf.linalg.qr(tf.linalg.matrix_transpose(x)),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    "eigh": "linalg.eigh",
}

_NO_KERNEL = "tensorflow has no kernel for it in {}"

#: It rotates until what is left is 1e-6, whatever the dtype.
_INACCURATE = "tensorflow's xla decomposes float64 to no more than seven digits"

GAPS: tuple[Gap, ...] = (
    # MatMul and BatchMatMulV3 refuse it (tensorflow/core/ops/math_ops.cc).
    Gap("tensorflow stores float8, and multiplies nothing in it", "scaled_gemm"),
    *(
        Gap("tensorflow has no linear algebra in bfloat16", operation.name, dtype="bfloat16")
        for operation in DECOMPOSITIONS
        if operation.name != "triangular_solve"
    ),
    *(
        Gap(_NO_KERNEL.format(dtype), operation, execution, dtype=dtype)
        for operation, dtype in (
            *((name, "float16") for name in ("cholesky", "solve", "triangular_solve")),
            *((name, "float16") for name in ("svd_values", "svd", "eigh")),
            ("triangular_solve", "bfloat16"),
        )
        for execution in ("eager", "graph")
    ),
    # The system that the gradient solves.
    *(
        Gap(_NO_KERNEL.format("float16"), operation, execution, "backward", "float16")
        for operation in ("qr", "lq")
        for execution in ("eager", "graph")
    ),
    *(
        Gap(
            "tensorflow's xla finds no singular values in float16",
            operation,
            "xla",
            dtype="float16",
        )
        for operation in ("svd_values", "svd")
    ),
    Gap("tensorflow's xla is off by 3 % in float16", "eigh", "xla", dtype="float16"),
    Gap(_NO_KERNEL.format("float16"), "slogdet", dtype="float16"),
    Gap("tensorflow's xla has no determinants", "slogdet", "xla"),
    *(Gap(_INACCURATE, operation, "xla", dtype="float64") for operation in ("svd", "eigh")),
    Gap(_INACCURATE, "svd_values", "xla", "backward", "float64"),
)
