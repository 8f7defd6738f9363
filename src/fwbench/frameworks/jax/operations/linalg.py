"""JAX: vectors and matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg  # noqa: F401 (jax has it once it is imported)

from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS


def _l2_normalize(x: Any) -> Any:
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


def _contracting(left: int, right: int, **more: Any) -> Call:
    """A product of matrices over these axes: eagerly, ``x.T`` would be a copy of its own."""
    return Call("lax.dot_general", dimension_numbers=(((left,), (right,)), ((), ())), **more)


OPERATIONS: Table = {
    "dot": "numpy.dot",
    "gemm": "numpy.matmul",
    "flatten": "numpy.ravel",
    "l2_normalize": lambda jax: _l2_normalize,
    "gemv": "numpy.matmul",
    "outer": "numpy.outer",
    "gemm_nn": "numpy.matmul",
    "gemm_tn": _contracting(0, 0),
    "gemm_nt": _contracting(1, 1),
    # XLA has cuBLASLt compute it, with a scale of 1 for either factor.
    "scaled_gemm": _contracting(1, 1, preferred_element_type=jnp.bfloat16),
    "batch_gemm": "numpy.matmul",
    "einsum": lambda jax: partial(jax.numpy.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("numpy.tensordot", axes=2),
    # Flax has the weights of a dense layer transposed.
    "linear": Laid(
        lambda jax, n: lambda x, weight, bias: jax.numpy.dot(x, weight) + bias,
        axes("", "nk->kn"),
    ),
    "cholesky": "numpy.linalg.cholesky",
    "solve": "numpy.linalg.solve",
    "triangular_solve": Call("scipy.linalg.solve_triangular", lower=True),
    "inverse": "numpy.linalg.inv",
    "slogdet": lambda jax: lambda x: jax.numpy.linalg.slogdet(x)[1],
    "svd_values": Call("numpy.linalg.svd", compute_uv=False),
    "svd": Call("numpy.linalg.svd", full_matrices=False),
    "qr": "numpy.linalg.qr",
    "lq": Laid(
        lambda jax: lambda x: jax.numpy.linalg.qr(x.T),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    "eigh": "numpy.linalg.eigh",
}

GAPS: tuple[Gap, ...] = tuple(
    Gap(f"jax has no linear algebra in {dtype}", operation.name, dtype=dtype)
    for operation in DECOMPOSITIONS
    for dtype in ("float16", "bfloat16")
)
