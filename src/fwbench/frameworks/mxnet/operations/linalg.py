"""MXNet: vectors and matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.layout import Arrays, Layout, axes
from fwbench.frameworks.mxnet.operators import NumPyCall, of_numpy
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS


def _exchanged(results: Arrays) -> Any:
    """The other order."""
    return [*reversed(results)]


def _eigh(results: Arrays) -> Any:
    """Vectors are rows, and come first."""
    vectors, values = results
    return [values, vectors.T]


def _placed_eigh(results: Arrays) -> Any:
    values, vectors = results
    return [vectors.T, values]


OPERATIONS: Table = {
    "dot": "dot",
    "gemm": "dot",
    # The operator copies; the method of an NDArray (not of a symbol) would return a view.
    "flatten": Call("reshape", shape=(-1,)),
    "l2_normalize": "L2Normalization",
    "gemv": "dot",
    "outer": NumPyCall("outer"),
    "gemm_nn": "dot",
    "gemm_tn": Call("dot", transpose_a=True),
    "gemm_nt": Call("dot", transpose_b=True),
    "batch_gemm": "batch_dot",
    "einsum": lambda F: of_numpy(partial(F.np.einsum, "bmk,bnk->bmn")),
    "tensordot": NumPyCall("tensordot", axes=2),
    "linear": lambda F, n: partial(F.FullyConnected, num_hidden=n),
    "cholesky": "linalg.potrf",
    "solve": NumPyCall("linalg.solve"),
    "triangular_solve": "linalg.trsm",
    "inverse": "linalg.inverse",
    "slogdet": lambda F: lambda x: F.linalg.slogdet(x)[1],
    # There are none without the vectors.
    "svd_values": lambda F: lambda x: of_numpy(F.np.linalg.svd)(x)[1],
    "svd": NumPyCall("linalg.svd"),
    # What LQ is for rows, QR is for columns; np.linalg.qr is NumPy's.
    "qr": Laid("linalg.gelqf", axes("mn->nm", results=("mn->nm", "mn->nm"))),
    "lq": Laid("linalg.gelqf", Layout(place_results=_exchanged, restore_results=_exchanged)),
    "eigh": Laid("linalg.syevd", Layout(place_results=_placed_eigh, restore_results=_eigh)),
}

_PRODUCTS = ("dot", "gemm", "gemv", "outer", "gemm_nn", "gemm_tn", "gemm_nt", "batch_gemm")

GAPS: tuple[Gap, ...] = (
    Gap("mxnet has no float8", "scaled_gemm"),
    *(
        Gap("mxnet has no float16 product on the CPU", operation, dtype="float16", device="cpu")
        for operation in (*_PRODUCTS, "tensordot", "linear")
    ),
    *(
        Gap("mxnet has no linear algebra in float16", operation.name, dtype="float16")
        for operation in DECOMPOSITIONS
    ),
)
