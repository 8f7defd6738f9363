"""Vectors and matrices: products, systems of equations, decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Sizes
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS
from fwbench.workloads.operations.products import PRODUCTS
from fwbench.workloads.workload import Cost

Arrays = tuple[NDArray[Any], ...]

_MATRIX_FULL = (8, 64, 256, 1_024, 2_048, 4_096)


def _vectors(size: int, rng: np.random.Generator) -> Arrays:
    """Two whose product is some four times the square root of their length.

    It is never near 0, where any error is large, and the terms have both signs: of terms of one
    sign, a plain float32 sum of ten million loses several per cent (TensorFlow's does).
    """
    x = rng.standard_normal(size)
    return x, rng.standard_normal(size) + 4.0 * x / np.sqrt(size)


def _matrix(size: int, rng: np.random.Generator) -> Arrays:
    return (rng.standard_normal((size, size)),)


def _matrices(size: int, rng: np.random.Generator) -> Arrays:
    return rng.standard_normal((size, size)), rng.standard_normal((size, size))


def _l2_normalize_rows(x: NDArray[Any]) -> NDArray[Any]:
    return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True))


LINALG = family(
    "linalg",
    # The product that everything is made of; and the decomposition that is the core of Gaussian
    # processes and of second-order optimisers.
    ("gemm", "cholesky"),
    # The dot product of two vectors of ``size`` elements.
    Operation(
        name="dot",
        inputs=_vectors,
        reference=np.dot,
        sizes=Sizes(
            quick=(1_000, 31_000, 1_000_000),
            paper=tuple(range(1_000, 91_001, 10_000)),
            full=(10, 1_000, 100_000, 1_000_000, 10_000_000, 50_000_000),
        ),
        cost=lambda n: Cost(flops=2.0 * n, elements=2.0 * n + 1),
        # Forward; then both gradients: read x, y and g, write dx and dy.
        backward_cost=lambda n: Cost(flops=4.0 * n, elements=6.0 * n + 2),
        terms=lambda n: n,
    ),
    # The product of two ``size`` x ``size`` matrices.
    Operation(
        name="gemm",
        inputs=_matrices,
        reference=np.matmul,
        sizes=Sizes(quick=(64, 256, 1_024), paper=tuple(range(50, 551, 50)), full=_MATRIX_FULL),
        cost=lambda n: Cost(flops=2.0 * n**3, elements=3.0 * n**2),
        # Forward and one more product for each gradient.
        backward_cost=lambda n: Cost(flops=6.0 * n**3, elements=9.0 * n**2),
        terms=lambda n: n,
        factors=lambda x, y: (x, y),
    ),
    # A ``size`` x ``size`` matrix as a vector of ``size ** 2`` elements. It may be a view.
    Operation(
        name="flatten",
        inputs=_matrix,
        reference=np.ravel,
        sizes=Sizes(quick=(64, 256, 1_024), paper=tuple(range(50, 551, 50)), full=_MATRIX_FULL),
        # What a copy moves; a view moves nothing, which is why the record says which it was.
        cost=lambda n: Cost(flops=0.0, elements=2.0 * n**2),
        backward_cost=lambda n: Cost(flops=0.0, elements=4.0 * n**2),
    ),
    # Every row of a ``size`` x ``size`` matrix divided by its Euclidean norm.
    Operation(
        name="l2_normalize",
        inputs=_matrix,
        reference=_l2_normalize_rows,
        sizes=Sizes(quick=(50, 250, 1_024), paper=(50, 150, 250, 350, 450), full=_MATRIX_FULL),
        cost=lambda n: Cost(flops=3.0 * n**2 + 2.0 * n, elements=2.0 * n**2),
        backward_cost=lambda n: Cost(flops=8.0 * n**2 + 4.0 * n, elements=5.0 * n**2),
        terms=lambda n: n,
    ),
    *PRODUCTS,
    *DECOMPOSITIONS,
)
