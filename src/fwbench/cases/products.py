"""Large products and their gradients, verified without computing the product in NumPy.

A gradient of a product is one, too: of C = A B with the cotangent G they are G B' and A' G.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import freivalds, precision, verify
from fwbench.cases.backward import Backward
from fwbench.cases.forward import Forward, check_count
from fwbench.cases.inputs import widest
from fwbench.cases.kept import KEPT
from fwbench.cases.verify import Deviation
from fwbench.errors import VerificationError, WrongGradient, WrongResult
from fwbench.grid import Cell
from fwbench.names import is_complex
from fwbench.records.facts import CaseFacts
from fwbench.workloads.operation import Operation

#: Products of more multiplications are verified by sums: 1,625 cubed, of which NumPy does some 0.3
#: s long on two cores in float64.
LEAST = 2.0**32

#: What is recorded as that which they were verified against.
_AGAINST = "NumPy, by Freivalds' method"

Arrays = Sequence[NDArray[Any]]


def is_large(operation: Operation, cell: Cell) -> bool:
    """Whether a case is a product that is verified by sums of its columns.

    Args:
        operation: of the case.
        cell: the case.
    """
    cost = operation.cost_of("forward", cell.size)
    if operation.factors is None or cost is None or is_complex(cell.dtype):
        return False
    return cost.flops / 2 > LEAST


class Product(Forward):
    """A product of two matrices, or of two batches of them."""

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """Sums of the result's columns are those of the product."""
        return self._said([self._compare_product(on_host, self._checked(on_host))])

    def _compare_product(
        self, on_host: Sequence[NDArray[Any]], inputs: Arrays
    ) -> tuple[Deviation, float]:
        left, right = self._factors(inputs)
        check_count(on_host, [left])
        (result,) = self.layout.restore_results(on_host)
        self._check_shape(result, left, right)
        return self._compare_sums("result", result, left, right, WrongResult, "the result")

    def _factors(self, operands: Arrays) -> tuple[NDArray[Any], NDArray[Any]]:
        """What is multiplied, of operands as they lie in the framework."""
        assert self.operation.factors is not None  # noqa: S101 (what makes it a product)
        left, right = self.operation.factors(*self.layout.restore([*map(widest, operands)]))
        return left, right

    def _check_shape(self, result: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> None:
        expected = _shape_of(left, right)
        if result.shape != expected:
            raise WrongResult(
                f"the result has the shape {result.shape}, the NumPy reference {expected}; the "
                "implementation computes something else"
            )

    def _compare_sums(
        self,
        key: str,
        actual: NDArray[Any],
        left: NDArray[Any],
        right: NDArray[Any],
        error: type[VerificationError],
        what: str,
    ) -> tuple[Deviation, float]:
        """What a product is off by, and what it may be."""
        (expected,) = KEPT.arrays(
            self._key(f"sums of {key}", len(self._placed.digests)),
            lambda: [freivalds.expected_sums(left, right)],
        )
        tf32 = self.cell.toggle("tf32") == "on"
        allowed = precision.tolerance(self.cell, left.shape[-1], self.operation.tolerance)
        limit = freivalds.sum_tolerance(allowed, tf32=tf32)
        return freivalds.compare(actual, expected, limit, error, what), limit

    def _said(self, products: Sequence[tuple[Deviation, float]]) -> CaseFacts:
        """Of the product that comes closest to what is allowed; the precision is the result's."""
        deviation, limit = max(products, key=lambda found: found[0].largest / found[1])
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
        """Sums of the columns of the result and of both gradients are those of such products."""
        inputs = self._checked(on_host)
        split = len(on_host) - len(self.variables)
        results, gradients = on_host[:split], on_host[split:]
        operands = inputs[: len(self.inputs)]
        found = [self._compare_product(results, operands)]
        left, right = self._factors(operands)
        (cotangent,) = self.layout.restore_results([widest(inputs[-1])])
        for position, (gradient, operand) in enumerate(zip(gradients, operands, strict=True)):
            verify.gradient_shape(position, gradient, operand)
        ways = ((cotangent, _transposed(right)), (_transposed(left), cotangent))
        for position, (gradient, way) in enumerate(
            zip(self._factors(gradients), ways, strict=True)
        ):
            what = f"the gradient of input {position}"
            found.append(
                self._compare_sums(f"gradient {position}", gradient, *way, WrongGradient, what)
            )
        self._check_digits(gradients)
        return self._said(found)


def _shape_of(left: NDArray[Any], right: NDArray[Any]) -> tuple[int, ...]:
    return (*left.shape[:-1], right.shape[-1])


def _transposed(matrices: NDArray[Any]) -> NDArray[Any]:
    return np.swapaxes(matrices, -1, -2)
