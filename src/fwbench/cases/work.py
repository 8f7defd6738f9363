"""Work that is bound to its inputs: creation, forward, backward; each knows its right result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.grid import Cell
from fwbench.records.facts import CaseFacts
from fwbench.workloads.operation import Operation

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

_COTANGENT_SEED = 1


def bind(cell: Cell, framework: Framework) -> Work:
    """Place the inputs on the device and build the zero-argument ``run``; nothing is timed yet.

    Args:
        cell: what to compute, and how.
        framework: that computes it.
    """
    operation = cast("Operation", cell.workload)
    operands = [_in_dtype(x, cell.dtype) for x in operation.operands(cell.size)]
    work = Creation if operation.creates else Forward
    if cell.direction == "backward":
        work = Backward
    return work(cell, framework, operands)


class Work(ABC):
    """Work that is bound to its inputs, and knows what its result must be.

    Attributes:
        run: one call of it.
    """

    run: BoundCall

    @abstractmethod
    def verify(self, result: Any) -> CaseFacts:
        """Compare the result of a run with what it must be.

        Returns:
            What was found, for the record.

        Raises:
            VerificationError: the result is wrong.
        """


class _OperationWork(Work):
    """An operation's."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        self.cell = cell
        self.framework = framework
        self.operation = cast("Operation", cell.workload)
        self.allowed = verify.tolerance(
            cell.dtype, self.operation.terms(cell.size), self.operation.tolerance
        )


class Creation(_OperationWork):
    """An array from host data: verified to be a copy."""

    def __init__(self, cell: Cell, framework: Framework, operands: list[NDArray[Any]]) -> None:
        super().__init__(cell, framework)
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        self.values = operands[0]
        self.source = self.operation.source(operands[0])
        self.run = partial(framework.creator(cell.device, cell.dtype), self.source)

    def verify(self, result: Any) -> CaseFacts:
        """The values are the source's, and stay so when the source changes."""
        before = np.copy(self.framework.to_numpy(result))
        error = verify.result(before, self.values, self.allowed)
        kept = self.source.copy()
        self.source[:] = [0.0] * len(self.source)
        try:
            verify.copied(before, self.framework.to_numpy(result))
        finally:
            self.source[:] = kept
        return CaseFacts(max_relative_error=error, tolerance=self.allowed, result_is_view=False)


class Forward(_OperationWork):
    """The operation on arrays that lie on the device."""

    def __init__(self, cell: Cell, framework: Framework, operands: list[NDArray[Any]]) -> None:
        super().__init__(cell, framework)
        self.inputs = [self.placed(x) for x in operands]
        self.run = framework.forward(self.implementation, self.inputs, cell.execution)

    @property
    def implementation(self) -> Any:
        """The operation's own for this framework, or the framework's for the operation."""
        operation = self.operation
        own = operation.implementations.get(self.framework.name)
        return own or self.framework.implementation(operation.name)

    def placed(self, operand: NDArray[Any]) -> Array:
        """An operand on the device, checked to have arrived."""
        dtype = self.cell.dtype if _is_float(operand) else operand.dtype.name
        array = self.framework.creator(self.cell.device, dtype)(operand)
        verify.placed(self.framework.to_numpy(array), operand, dtype)
        return array

    def values(self) -> list[NDArray[Any]]:
        """The inputs as the framework has them, rounded to its dtype, for the reference."""
        on_host = (self.framework.to_numpy(x) for x in self.inputs)
        return [x.astype(np.float64) if _is_float(x) else x for x in on_host]

    def verify(self, result: Any) -> CaseFacts:
        """The result is the NumPy reference's; also tells whether it is a view of an input."""
        actual = self.framework.to_numpy(result)
        reference = self.operation.reference(*self.values())
        error = verify.result(actual, reference, self.allowed)
        addresses = {self.framework.address(x) for x in self.inputs}
        address = self.framework.address(result)
        return CaseFacts(
            max_relative_error=error,
            tolerance=self.allowed,
            result_is_view=None if address is None else address in addresses,
        )


class Backward(Forward):
    """The forward pass and the gradient by every floating-point input."""

    def __init__(self, cell: Cell, framework: Framework, operands: list[NDArray[Any]]) -> None:
        super().__init__(cell, framework, operands)
        self.variables = [i for i, x in enumerate(operands) if _is_float(x)]
        shape = np.shape(self.operation.reference(*self.values()))
        cotangent = np.random.default_rng(_COTANGENT_SEED).standard_normal(shape)
        self.cotangent = self.placed(_in_dtype(cotangent, cell.dtype))
        self.run = framework.backward(
            self.implementation, self.inputs, self.variables, self.cotangent, cell.execution
        )

    def verify(self, result: Any) -> CaseFacts:
        """Every gradient has the slope of the reference's central difference."""
        error = verify.gradient(
            [self.framework.to_numpy(gradient) for gradient in result],
            self.operation.reference,
            self.values(),
            self.variables,
            self.framework.to_numpy(self.cotangent).astype(np.float64),
            self.allowed,
        )
        return CaseFacts(max_relative_error=error, tolerance=self.allowed, result_is_view=False)


def _is_float(array: NDArray[Any]) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _in_dtype(operand: NDArray[Any], dtype: str) -> NDArray[Any]:
    """A floating-point operand in the dtype of the case, or in float32 where NumPy lacks it."""
    if not _is_float(operand):
        return operand
    return np.asarray(operand, dtype="float32" if dtype == "bfloat16" else dtype)
