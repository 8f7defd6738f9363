"""Linear algebra: vectors and matrices, systems of equations, decompositions.

Costs of decompositions are those of Golub and Van Loan, Matrix Computations, 4th edition, 2013; of
gradients, those of Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008, and for QR those of Walter and Lehmann, Algorithmic
differentiation of linear algebra functions with application in optimum experimental design, 2010.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.products import PRODUCTS
from fwbench.workloads.operations.vectors import normal, square
from fwbench.workloads.workload import Cost

Arrays = tuple[NDArray[Any], ...]

_SIZES = sizes_of("linalg")

#: Right-hand sides of a system.
_COLUMNS = 8


def _regular(size: int, rng: np.random.Generator) -> Arrays:
    """Singular values from 1 to 5: no error is magnified beyond that."""
    return (rng.standard_normal((size, size)) / np.sqrt(size) + 3.0 * np.eye(size),)


def _system(size: int, rng: np.random.Generator) -> Arrays:
    return *_regular(size, rng), rng.standard_normal((size, _COLUMNS))


def _triangular_system(size: int, rng: np.random.Generator) -> Arrays:
    matrix, columns = _system(size, rng)
    return np.tril(matrix), columns


def _positive_definite(size: int, rng: np.random.Generator) -> Arrays:
    """Symmetric, with eigenvalues from 2 to 6."""
    x = rng.standard_normal((size, size))
    return (x @ x.T / size + 2.0 * np.eye(size),)


def _basis(size: int, rng: np.random.Generator) -> NDArray[Any]:
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def _separate_singular_values(size: int, rng: np.random.Generator) -> Arrays:
    """1, 2, 3, ...: which vectors belong to which is beyond doubt."""
    return ((_basis(size, rng) * np.arange(1.0, size + 1)) @ _basis(size, rng),)


def _separate_eigenvalues(size: int, rng: np.random.Generator) -> Arrays:
    """Symmetric, with eigenvalues of both signs that are one apart."""
    vectors = _basis(size, rng)
    return ((vectors * (np.arange(size) - size / 2 + 0.3)) @ vectors.T,)


def _lq(x: NDArray[Any]) -> Arrays:
    q, r = np.linalg.qr(x.T)
    return r.T, q.T


def _symmetric(direction: NDArray[Any]) -> NDArray[Any]:
    lower = np.tril(direction)
    return np.asarray(lower + np.tril(direction, -1).T)


def _signed(columns: int, rows: int | None = None) -> Callable[..., Arrays]:
    """Gives factors the signs of others.

    Args:
        columns: the position of the factor whose columns have free signs.
        rows: that of the factor whose rows change theirs with them; None where there is none.
    """

    def aligned(expected: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]) -> Arrays:
        signs = np.copysign(1.0, np.sum(expected[columns] * results[columns], axis=0))
        factors = [*expected]
        factors[columns] = factors[columns] * signs
        if rows is not None:
            factors[rows] = signs[:, None] * factors[rows]
        return tuple(factors)

    return aligned


def _cubic(cubes: float, squares: float, vectors: float, n: int) -> Cost:
    """FLOPs by n ** 3; elements by n ** 2, and by n for vectors."""
    return Cost(flops=cubes * n**3, elements=float(squares * n**2 + vectors * n))


def _solve_cost(cubes: float, squares: float, passes: float, n: int) -> Cost:
    """FLOPs by n ** 3, and by n ** 2 for each right-hand side; passes over all arrays."""
    return Cost(
        flops=cubes * n**3 + squares * n**2 * _COLUMNS,
        elements=float(passes * (n**2 + 2 * _COLUMNS * n)),
    )


def _costs(
    forward: tuple[float, float, float],
    backward: tuple[float, float, float],
    cost: Callable[[float, float, float, int], Cost] = _cubic,
) -> dict[str, Any]:
    """Costs without and with the gradient, by their first three arguments."""
    return {"cost": partial(cost, *forward), "backward_cost": partial(cost, *backward)}


#: An operation on ``size`` x ``size`` matrices whose work grows with their cube.
_algebra = partial(Operation, sizes=_SIZES["systems"], terms=lambda n: n)
# Every element goes through ``size`` reflections or rotations, each a sum of as many terms.
_decomposition = partial(_algebra, sizes=_SIZES["decompositions"], terms=lambda n: n * n)
_singular_values = partial(_decomposition, sizes=_SIZES["singular_values"])
_orthogonal = partial(
    _decomposition, **_costs((20 / 3, 5, 0), (20 / 3 + 32 / 3, 13, 0)), aligned=_signed(0, 1)
)

# The signs of vectors are free. So what they make up is compared, and that they are orthonormal.
# The gradient is that of the vectors with the signs which the framework chose.
DECOMPOSITIONS = (
    # The gradient: a product of triangular matrices, and two triangular systems.
    _algebra(
        "cholesky",
        _positive_definite,
        np.linalg.cholesky,
        **_costs((1 / 3, 2, 0), (1 / 3 + 3, 5, 0)),
        along=_symmetric,
    ),
    # The gradient: the transposed system, whose factors are known, and a product.
    _algebra(
        "solve", _system, np.linalg.solve, **_costs((2 / 3, 2, 1), (2 / 3, 6, 3), _solve_cost)
    ),
    # By the columns alone: gradients by the matrix differ in what is above the diagonal.
    _algebra(
        "triangular_solve",
        _triangular_system,
        lambda x, y: np.linalg.solve(np.tril(x), y),
        **_costs((0, 1, 1), (0, 2, 2), _solve_cost),
        variables=(1,),
    ),
    # The gradient: two products.
    _algebra("inverse", _regular, np.linalg.inv, **_costs((2, 2, 0), (6, 5, 0))),
    # The logarithm alone: the sign has no gradient. That of the logarithm is the inverse.
    _algebra(
        "slogdet",
        _regular,
        lambda x: np.linalg.slogdet(x)[1],
        cost=lambda n: Cost(flops=2 / 3 * n**3, elements=n**2 + 1.0),
        backward_cost=lambda n: Cost(flops=2.0 * n**3, elements=3.0 * n**2 + 2),
    ),
    # The gradient: the vectors, too, and their product.
    _singular_values(
        "svd_values",
        _separate_singular_values,
        partial(np.linalg.svd, compute_uv=False),
        **_costs((8 / 3, 1, 1), (21 + 2, 4, 3)),
        # An iteration stops before the last digit: XLA's at 1e-6, eight roundings of float32.
        tolerance=2.0,
    ),
    # The gradient: four products.
    _singular_values(
        "svd",
        _separate_singular_values,
        np.linalg.svd,
        **_costs((21, 3, 1), (21 + 8, 8, 3)),
        compared=lambda u, s, vh: (u * s @ vh, s, u.T @ u, vh @ vh.T),
        aligned=_signed(0, 2),
        # As above; the gradient has the vectors besides. Seen: 2.1 (XLA, float32, 48 x 48).
        tolerance=3.0,
    ),
    # Of a matrix that is twice as high as wide, both results reduced. The gradient: two products
    # with the orthonormal factor, one of triangular matrices, and a triangular system.
    _orthogonal(
        *("qr", normal(lambda n: (2 * n, n)), np.linalg.qr),
        compared=lambda q, r: (q @ r, np.abs(r), q.T @ q),
    ),
    # Of one that is twice as wide as high.
    _orthogonal(
        *("lq", normal(lambda n: (n, 2 * n)), _lq),
        compared=lambda lower, q: (lower @ q, np.abs(lower), q @ q.T),
    ),
    # The gradient: three products.
    _decomposition(
        "eigh",
        _separate_eigenvalues,
        np.linalg.eigh,
        **_costs((9, 2, 1), (9 + 6, 5, 3)),
        compared=lambda s, v: (v * s @ v.T, s, v.T @ v),
        aligned=_signed(1),
        along=_symmetric,
        # Eigen's vectors of 256 eigenvalues one apart. Seen: 1.2 (TensorFlow, eager).
        tolerance=1.25,
    ),
)


def _vectors(size: int, rng: np.random.Generator) -> Arrays:
    """Two whose product is some four times the square root of their length.

    It is never near 0, where any error is large, and the terms have both signs: of terms of one
    sign, a plain float32 sum of ten million loses several per cent (TensorFlow's does).
    """
    x = rng.standard_normal(size)
    return x, rng.standard_normal(size) + 4.0 * x / np.sqrt(size)


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
        sizes=_SIZES["dot"],
        cost=lambda n: Cost(flops=2.0 * n, elements=2.0 * n + 1),
        # Forward; then both gradients: read x, y and g, write dx and dy.
        backward_cost=lambda n: Cost(flops=4.0 * n, elements=6.0 * n + 2),
        terms=lambda n: n,
    ),
    # The product of two ``size`` x ``size`` matrices.
    Operation(
        name="gemm",
        inputs=normal(square, square),
        reference=np.matmul,
        sizes=_SIZES["gemm"],
        cost=lambda n: Cost(flops=2.0 * n**3, elements=3.0 * n**2),
        # Forward and one more product for each gradient.
        backward_cost=lambda n: Cost(flops=6.0 * n**3, elements=9.0 * n**2),
        terms=lambda n: n,
        factors=lambda x, y: (x, y),
    ),
    # A ``size`` x ``size`` matrix as a vector of ``size ** 2`` elements. It may be a view.
    Operation(
        name="flatten",
        inputs=normal(square),
        reference=np.ravel,
        sizes=_SIZES["gemm"],
        # What a copy moves; a view moves nothing, which is why the record says which it was.
        cost=lambda n: Cost(flops=0.0, elements=2.0 * n**2),
        backward_cost=lambda n: Cost(flops=0.0, elements=4.0 * n**2),
    ),
    # Every row of a ``size`` x ``size`` matrix divided by its Euclidean norm.
    Operation(
        name="l2_normalize",
        inputs=normal(square),
        reference=lambda x: x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)),
        sizes=_SIZES["l2_normalize"],
        cost=lambda n: Cost(flops=3.0 * n**2 + 2.0 * n, elements=2.0 * n**2),
        backward_cost=lambda n: Cost(flops=8.0 * n**2 + 4.0 * n, elements=5.0 * n**2),
        terms=lambda n: n,
    ),
    *PRODUCTS,
    *DECOMPOSITIONS,
)
