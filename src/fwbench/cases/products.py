"""Large products and their gradients, verified without computing the product in NumPy.

A gradient of a product is one, too: of C = A B with the cotangent G they are G B' and A' G.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import precision, verify
from fwbench.cases.backward import Backward
from fwbench.cases.forward import Forward, check_count
from fwbench.cases.inputs import widest
from fwbench.cases.verify import Deviation
from fwbench.errors import VerificationError, WrongGradient, WrongResult
from fwbench.records.facts import CaseFacts
from fwbench.terms.names import is_complex
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation

#: Products of more multiplications are verified by sums: 1,625 cubed, of which NumPy does some 0.3
#: s long on two cores in float64.
LEAST = 2.0**32

#: What is recorded as that which they were verified against.
_AGAINST = "NumPy, by Freivalds' method"

Arrays = Sequence[NDArray[Any]]


def is_large(operation: Operation, cell: Cell) -> bool:
    """True if a case is a product that is verified by sums of its columns."""
    cost = operation.cost_of("forward", cell.size)
    if operation.factors is None or cost is None or is_complex(cell.dtype):
        return False
    return cost.flops / 2 > LEAST


class Product(Forward):
    """A product of two matrices, or of two batches of them."""

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        return self._product_facts([self._compare_product(on_host, self._checked(on_host))])

    def _compare_product(
        self, on_host: Sequence[NDArray[Any]], inputs: Arrays
    ) -> tuple[Deviation, float]:
        left, right = self._factors(inputs)
        check_count(on_host, [left])
        (result,) = self.layout.restore_results(on_host)
        verify.check_shape(result, _shape_of(left, right))
        return self._compare_sums(result, left, right, WrongResult, "the result")

    def _factors(self, operands: Arrays) -> tuple[NDArray[Any], NDArray[Any]]:
        assert self.operation.factors is not None  # noqa: S101 (what makes it a product)
        left, right = self.operation.factors(*self.layout.restore([*map(widest, operands)]))
        return left, right

    def _compare_sums(
        self,
        actual: NDArray[Any],
        left: NDArray[Any],
        right: NDArray[Any],
        error: type[VerificationError],
        what: str,
    ) -> tuple[Deviation, float]:
        """Error of a product, and its tolerance."""
        tf32 = self.cell.toggle("tf32") == "on"
        allowed = precision.tolerance(self.cell, left.shape[-1], self.operation.tolerance)
        limit = sum_tolerance(allowed, tf32=tf32)
        return compare(actual, left, right, limit, error, what), limit

    def _product_facts(self, products: Sequence[tuple[Deviation, float]]) -> CaseFacts:
        """Facts of the product closest to its tolerance; the precision is the result's."""
        deviation, limit = max(products, key=lambda product: product[0].largest / product[1])
        (result, _), *_gradients = products
        return CaseFacts(
            max_relative_error=deviation.largest,
            tolerance=limit,
            precision_bits=precision.bits(self.dtype, result.rms, 0.0, self.terms),
            verified_against=_AGAINST,
        )


class ProductGradient(Product, Backward):
    """A product and the gradients of its factors."""

    def _result_forms(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        left, right = self._factors(self._placed.check())
        return [(_shape_of(left, right), np.dtype(np.float64))]

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        inputs = self._checked(on_host)
        split = len(on_host) - len(self.variables)
        results, gradients = on_host[:split], on_host[split:]
        operands = inputs[: len(self.inputs)]
        compared = [self._compare_product(results, operands)]
        left, right = self._factors(operands)
        (cotangent,) = self.layout.restore_results([widest(inputs[-1])])
        for position, (gradient, operand) in enumerate(zip(gradients, operands, strict=True)):
            verify.gradient_shape(position, gradient, operand)
        ways = ((cotangent, _transposed(right)), (_transposed(left), cotangent))
        for position, (gradient, way) in enumerate(
            zip(self._factors(gradients), ways, strict=True)
        ):
            what = f"the gradient of input {position}"
            compared.append(self._compare_sums(gradient, *way, WrongGradient, what))
        self._check_digits(gradients)
        return self._product_facts(compared)


def _shape_of(left: NDArray[Any], right: NDArray[Any]) -> tuple[int, ...]:
    return (*left.shape[:-1], right.shape[-1])


def _transposed(matrices: NDArray[Any]) -> NDArray[Any]:
    return np.swapaxes(matrices, -1, -2)


#: Columns that are added up, and sets of weights.
GROUP = 64
REPETITIONS = 4

#: What a sum may be off by, for each of the square root of its columns: of an element's tolerance.
#: Seen of products of 256 to 2,048 terms: 0.09 in float32, 0.28 in bfloat16 with sums in float32,
#: 1.5 in TF32 where bits are cut off, which moves all elements towards zero.
_OF_TOLERANCE = 1.0
_OF_TF32 = 3.0

#: The mean square of a weight.
_MEAN_SQUARE = 7.0 / 3.0


def _drawn_weights(columns: int) -> NDArray[np.float64]:
    """Weights of columns, of the system's entropy: ``(REPETITIONS, columns)``."""
    rng = np.random.default_rng()
    signs = rng.choice((-1.0, 1.0), (REPETITIONS, columns))
    return signs * rng.uniform(1.0, 2.0, (REPETITIONS, columns))


def _expected_sums(
    left: NDArray[Any], right: NDArray[Any], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The sums of the columns of a product, without it: ``(..., rows, REPETITIONS, groups)``."""
    columns = _sums(right, weights)
    flat = columns.reshape(*columns.shape[:-2], -1)
    product: NDArray[np.float64] = np.matmul(left.astype(np.float64, copy=False), flat)
    return product.reshape(*product.shape[:-1], *columns.shape[-2:])


def _sums(matrix: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weighted sums of each group of columns; the last one may be smaller."""
    whole = matrix.shape[-1] // GROUP * GROUP
    parts = [
        np.einsum(
            "...gk,rgk->...rg",
            columns.reshape(*columns.shape[:-1], -1, size),
            weight.reshape(REPETITIONS, -1, size),
            dtype=np.float64,
        )
        for columns, weight, size in (
            (matrix[..., :whole], weights[:, :whole], GROUP),
            (matrix[..., whole:], weights[:, whole:], matrix.shape[-1] - whole),
        )
        if columns.shape[-1]
    ]
    return np.concatenate(parts, axis=-1)


def compare(
    actual: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    limit: float,
    error: type[VerificationError],
    what: str = "the result",
) -> Deviation:
    """Compare a product with what sums of its columns must be.

    The weights are drawn now, when the product is there: a product could be wrong in every element,
    and have the right sums for weights that are known before.

    Args:
        actual: ``(..., rows, columns)``, of the shape that it must have.
        left: ``(..., rows, terms)``.
        right: ``(..., terms, columns)``.
        limit: what a sum may be off by, of :func:`sum_tolerance`.

    Returns:
        The largest error of a sum, as if a single element had it; and the root mean square of
        errors of elements that have such sums, relative to that of the product.

    Raises:
        VerificationError: of the kind asked for: a sum is off by more than rounding explains.
    """
    weights = _drawn_weights(actual.shape[-1])
    expected = _expected_sums(left, right, weights)
    off = _sums(actual, weights) - expected
    columns = _columns(actual)
    scale = _scale(expected, columns)
    errors = np.abs(off) / scale
    errors[~np.isfinite(errors)] = np.inf
    place = np.unravel_index(int(np.argmax(errors)), errors.shape)
    if not errors[place] <= limit:
        *row, repetition, group = map(int, place)
        first, last = group * GROUP, min(actual.shape[-1], (group + 1) * GROUP) - 1
        raise error(
            f"{what} is wrong: the columns {first} to {last} of row {row}, weighted at random "
            f"(Freivalds' method, weights {repetition + 1} of {REPETITIONS}), add up to "
            f"{(off + expected)[place]:.9g}, and those of the NumPy reference to "
            f"{expected[place]:.9g}; relative to an element the error is {errors[place]:.3g}, and "
            f"{limit:.3g} is allowed"
        )
    rms = float(np.sqrt(np.mean((off / scale) ** 2 / columns / _MEAN_SQUARE)))
    return Deviation(float(errors[place]), rms)


def sum_tolerance(allowed: float, *, tf32: bool) -> float:
    """Allowed error of a weighted sum, relative to an element.

    Args:
        allowed: the largest relative error allowed of an element.
        tf32: whether factors are rounded to TF32 first.
    """
    return allowed * (_OF_TF32 if tf32 else _OF_TOLERANCE) * float(np.sqrt(GROUP))


def _columns(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Number of columns in each group."""
    starts = np.arange(0, matrix.shape[-1], GROUP)
    return np.minimum(GROUP, matrix.shape[-1] - starts).astype(np.float64)


def _scale(expected: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root mean square of the elements of each row, or of all where that is larger.

    By the sums: what products of different elements add to their squares has random signs.
    """
    rows = np.mean(expected**2 / columns / _MEAN_SQUARE, axis=(-2, -1), keepdims=True)
    scale: NDArray[np.float64] = np.sqrt(np.maximum(rows, np.mean(rows)))
    return np.where(scale > 0, scale, 1.0)
