"""PyTorch: vectors and matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fwbench.frameworks.layout import Layout, transposed_factors
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS


class _Scaled(Call):
    """A product of float8 with a scale of 1 for either factor, on their device."""

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        """The product of the first factor and the second one transposed."""
        product, whole = super().__call__(namespace), namespace.nn.functional.ScalingType.TensorWise
        scales: list[Any] = []

        def run(x: Any, y: Any) -> Any:
            if not scales:
                scales.append(namespace.ones((), device=x.device))
            (one,) = scales
            return product(x, y.t(), one, whole, one, whole, output_dtype=namespace.bfloat16)

        return run


OPERATIONS: Table = {
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "flatten",
    "l2_normalize": "nn.functional.normalize",
    "gemv": "mv",
    "outer": "outer",
    "gemm_nn": "matmul",
    # Transposed views, which BLAS reads as they are.
    "gemm_tn": lambda torch: lambda x, y: torch.matmul(x.T, y),
    "gemm_nt": lambda torch: lambda x, y: torch.matmul(x, y.T),
    "scaled_gemm": _Scaled("nn.functional.scaled_mm"),
    "batch_gemm": "bmm",
    "einsum": lambda torch: partial(torch.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("tensordot", dims=2),
    "linear": lambda torch, n: torch.nn.functional.linear,
    "cholesky": "linalg.cholesky",
    "solve": "linalg.solve",
    "triangular_solve": Call("linalg.solve_triangular", upper=False),
    "inverse": "linalg.inv",
    "slogdet": lambda torch: lambda x: torch.linalg.slogdet(x)[1],
    "svd_values": "linalg.svdvals",
    "svd": Call("linalg.svd", full_matrices=False),
    "qr": "linalg.qr",
    "lq": Laid(
        lambda torch: lambda x: torch.linalg.qr(x.T),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    "eigh": "linalg.eigh",
}

GAPS: tuple[Gap, ...] = tuple(
    Gap(f"torch has no linear algebra in {dtype}", operation.name, dtype=dtype)
    for operation in DECOMPOSITIONS
    for dtype in ("float16", "bfloat16")
)
