"""Linear algebra: what its results are, and its operands."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.terms.presets import deepbench
from fwbench.workloads.operations import products
from support.operations import named
from support.tables import tabled

Matrix = list[list[float]]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_factors_are_those_that_float8_has(scale: float) -> None:
    """The nearest, so nothing is lost where they are placed; small ones are subnormal."""
    # By the table of the format: bias 7, and no exponent of its own for infinities.
    known = [2.0**-9 * mantissa for mantissa in range(8)]
    known += [2.0 ** (e - 7) * (1 + m / 8) for e in range(1, 16) for m in range(8)][:-1]
    assert known[-1] == 448.0
    table = np.array([*(-number for number in known), *known])
    numbers = np.random.default_rng(7).standard_normal(4096) * scale
    rounded = products.in_float8(numbers)
    assert {*rounded} <= {*table}
    nearest = np.abs(numbers[:, None] - table).min(axis=1)
    np.testing.assert_array_equal(np.abs(rounded - numbers), nearest)
    operands = named("scaled_gemm").operands(named("scaled_gemm").smallest)
    for operand in operands:
        np.testing.assert_array_equal(products.in_float8(operand), operand)


def test_the_products_of_deepbench() -> None:
    assert {kind: len(texts) for kind, texts in deepbench("products").items()} == {
        "nn": 160,
        "tn": 73,
        "nt": 10,
    }
    for kind, text in [
        *(("nn", text) for text in ("1760x7000x1760", "35x8457x4096", "512x8x500000")),
        *(("nn", text) for text in ("8448x48000x2816", "4608x4x1536", "176x1500x1408")),
        *(("tn", text) for text in ("1024x700x512", "3072x128x1024", "1024x24000x1536")),
        *(("nt", text) for text in ("7680x5481x2560", "4096x7133x4096", "1024x32x512")),
    ]:
        assert text in deepbench("products")[kind]


@pytest.mark.parametrize("kind", deepbench("products"))
def test_the_shapes_of_deepbench_are_sizes_of_the_products(kind: str) -> None:
    """In their order none moves less than the one before; each is there once."""
    operation = named(f"gemm_{kind}")
    assert operation.form is not None
    texts = deepbench("products")[kind]
    moved = [operation.number_of(operation.form.read(text)) for text in texts]
    assert moved == sorted(moved)
    assert len({*texts}) == len(texts)


def det(x: Matrix) -> float:
    total = 0.0
    for order in itertools.permutations(range(len(x))):
        inversions = sum(a > b for a, b in itertools.combinations(order, 2))
        total += (-1) ** inversions * math.prod(x[i][j] for i, j in enumerate(order))
    return total


def reference(name: str, size: int = 4) -> tuple[tuple[NDArray[Any], ...], Any]:
    operation = named(name)
    operands = operation.operands(size)
    return operands, operation.reference(*operands)


def near(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.array(actual), np.array(expected), rtol=1e-10, atol=1e-11)


def test_cholesky() -> None:
    """A lower triangle whose product with its transpose is the matrix."""
    (x,), lower = reference("cholesky")
    near(lower @ lower.T, x)
    assert not np.any(np.triu(lower, 1))
    assert np.all(np.diagonal(lower) > 0)


@pytest.mark.parametrize("name", ["solve", "triangular_solve"])
def test_systems_are_solved(name: str) -> None:
    """The matrix times the solution is the right-hand side, for several of them."""
    (x, y), solution = reference(name)
    assert solution.shape == y.shape == (4, 8)
    near(x @ solution, y)


def test_a_triangular_system_reads_one_triangle() -> None:
    (x, y), solution = reference("triangular_solve")
    assert not np.any(np.triu(x, 1))
    near(named("triangular_solve").reference(x + np.triu(np.ones_like(x), 1), y), solution)


def test_inverse() -> None:
    (x,), inverse = reference("inverse")
    near(x @ inverse, np.eye(4))


def test_slogdet() -> None:
    (x,), actual = reference("slogdet")
    near(actual, math.log(abs(det(x.tolist()))))
    near(named("slogdet").reference(x[::-1]), actual)


@pytest.mark.parametrize("name", ["svd_values", "svd"])
def test_singular_values_are_known_and_apart(name: str) -> None:
    """They are 1, 2, 3, 4, so which vectors belong to which is beyond doubt."""
    _, actual = reference(name)
    near(actual if name == "svd_values" else actual[1], [4, 3, 2, 1])


def test_eigenvalues_are_known_and_apart() -> None:
    (x,), (values, vectors) = reference("eigh")
    near(values, [-1.7, -0.7, 0.3, 1.3])
    near(x, x.T)
    near(x @ vectors, vectors * values)


def other_signs(name: str, results: Any) -> tuple[NDArray[Any], ...]:
    """The same decomposition with other signs where they are free."""
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    flipped: tuple[NDArray[Any], ...] = {
        "svd": lambda u, s, vh: (u * signs, s, vh * signs[:, None]),
        "eigh": lambda values, vectors: (values, vectors * signs),
        "qr": lambda q, r: (q * signs, r * signs[:, None]),
        "lq": lambda lower, q: (lower * signs, q * signs[:, None]),
    }[name](*results)
    return flipped


@tabled
def test_what_is_compared_of_vectors_whose_signs_are_free(
    name: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    (x,), results = reference(name)
    assert tuple(np.shape(result) for result in results) == shapes
    compared = named(name).compared
    assert compared is not None
    made, *others = compared(*results)
    near(made, x)
    flipped = other_signs(name, results)
    for actual, expected in zip(compared(*flipped), [made, *others], strict=True):
        near(actual, expected)
    # The gradient is that of the signs which a framework has chosen.
    for actual, expected in zip(named(name).aligned(results, flipped), flipped, strict=True):
        near(actual, expected)
    stretched = [result * 2.0 for result in results]
    assert not any(map(np.allclose, compared(*stretched), [made, *others]))


@pytest.mark.parametrize("name", ["qr", "lq"])
def test_factors_are_triangular(name: str) -> None:
    _, results = reference(name)
    outside = np.tril(results[1], -1) if name == "qr" else np.triu(results[0], 1)
    assert not np.any(outside)


@pytest.mark.parametrize("name", ["solve", "inverse", "slogdet", "cholesky", "triangular_solve"])
def test_matrices_are_well_conditioned(name: str) -> None:
    """Rounding is not magnified beyond what is allowed for."""
    for size in named(name).by_preset.quick[:2]:
        assert np.linalg.cond(named(name).operands(size)[0]) < 10


@pytest.mark.parametrize("name", ["cholesky", "eigh"])
def test_gradients_by_symmetric_matrices_are_compared_along_symmetric_directions(name: str) -> None:
    along = named(name).along(np.arange(9.0).reshape(3, 3))
    near(along, along.T)
    near(np.tril(along), np.tril(np.arange(9.0).reshape(3, 3)))
