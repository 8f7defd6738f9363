"""Work that is bound to its inputs: creation, forward, backward; each knows its right result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import precision, reading, verify
from fwbench.cases.inputs import Inputs, digest, in_dtype, is_float
from fwbench.cases.verify import Deviation
from fwbench.errors import WrongGradient
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.grid import Cell
from fwbench.records.facts import CaseFacts
from fwbench.workloads.operation import Operation

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

#: Seeds of the cotangent, and of the one that takes its place when inputs are changed.
_COTANGENT_SEED = 1
_CHANGED_COTANGENT_SEED = 2

_LAST = "the result of the last timed call is wrong though the first was right"
_CHANGED = (
    "a call on changed inputs is wrong though the first call was right, so results are kept from "
    "earlier calls or computed when the work is bound"
)
_RESTORED = (
    "a call on the first inputs, after one on others, is wrong though the first call was right, so "
    "results are kept from earlier calls or work is skipped"
)

#: Makes a call of bound work and returns its result.
Call = Callable[[BoundCall], Any]


def called(run: BoundCall) -> Any:
    """The result of one call of bound work."""
    return run()


def bind(cell: Cell, framework: Framework) -> Work:
    """Place the inputs on the device and build the zero-argument ``run``; nothing is timed yet.

    Args:
        cell: what to compute, and how.
        framework: that computes it.
    """
    operation = cast("Operation", cell.workload)
    work = Creation if operation.creates else Forward
    if cell.direction == "backward":
        work = Backward
    return work(cell, framework)


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

    def verify_again(self, last: Any, call: Call = called) -> CaseFacts:
        """Verify what was timed, and what the same call does with changed inputs.

        Args:
            last: the result of the last call that was timed.
            call: makes a call whose inputs have changed, and returns its result.

        Returns:
            What was found in all verifications; nothing beyond the first one's by default.

        Raises:
            VerificationError: a result is wrong.
        """
        return CaseFacts()

    def arrays(self, result: Any) -> Sequence[Array]:
        """The framework's arrays in a result; none where they are not to be read one by one.

        Raises:
            VerificationError: the result does not have the form that it must have.
        """
        return ()


class _OperationWork(Work):
    """An operation's."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        self.cell = cell
        self.framework = framework
        self.operation = cast("Operation", cell.workload)
        self.terms = self.operation.terms(cell.size)
        self.allowed = verify.tolerance(cell.dtype, self.terms, self.operation.tolerance)
        self._found = CaseFacts()
        self._right: list[bytes] = []

    def arrays(self, result: Any) -> Sequence[Array]:
        """The result, which is one array."""
        return [result]

    def verify(self, result: Any) -> CaseFacts:
        """The values are the NumPy reference's; also tells whether memory is shared."""
        on_host = self._read(result)
        self._found = self._compare(on_host) | self._memory(result)
        self._right = [digest(array) for array in on_host]
        return self._found

    def verify_again(self, last: Any, call: Call = called) -> CaseFacts:
        """The last result is right, and so are a call on changed inputs and one on the first."""
        facts, right = self._found, self._right
        with verify.within(_LAST):
            facts = _worse(facts, self._verify_same(last, right))
        with verify.within(_CHANGED):
            run = self._change(self._operands(changed=True))
            facts = _worse(facts, self.verify(call(run)))
        with verify.within(_RESTORED):
            run = self._change(self._operands(changed=False))
            return _worse(facts, self._verify_same(call(run), right))

    def _verify_same(self, result: Any, right: Sequence[bytes]) -> CaseFacts:
        """As :meth:`verify`, for less: what has the values of a right result is right."""
        self._check_inputs()
        if [digest(array) for array in self._read(result)] == right:
            return self._memory(result)
        return self.verify(result)

    def _read(self, result: Any) -> list[NDArray[Any]]:
        return [reading.read(self.framework, array) for array in self.arrays(result)]

    def _operands(self, *, changed: bool) -> list[NDArray[Any]]:
        """The operands in the dtype of the case, or others of the same shapes."""
        operation, size = self.operation, self.cell.size
        operands = operation.changed_operands(size) if changed else operation.operands(size)
        return [in_dtype(x, self.cell.dtype) for x in operands]

    @abstractmethod
    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """What the comparison of a result with what it must be has found."""

    @abstractmethod
    def _memory(self, result: Any) -> CaseFacts:
        """Whether the result shares memory with what it was computed from."""

    @abstractmethod
    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        """Give the inputs other values; returns the call to make."""

    def _check_inputs(self) -> None:
        """The inputs are as they were placed.

        Raises:
            WrongResult: the work has changed them.
        """

    def _facts(self, found: Deviation, gradient_error: float = 0.0) -> CaseFacts:
        return CaseFacts(
            max_relative_error=max(found.largest, gradient_error),
            tolerance=self.allowed,
            precision_bits=precision.bits(self.cell.dtype, found.rms, gradient_error, self.terms),
        )

    def _is_view(self, arrays: Sequence[Array], of: set[int]) -> bool | None:
        addresses = [self.framework.address(array) for array in arrays]
        return None if None in addresses else not of.isdisjoint(addresses)


class Creation(_OperationWork):
    """An array from host data: verified to be a copy."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        (self.values,) = self._operands(changed=False)
        self.source = self.operation.source(self.values)
        self.run = partial(framework.creator(cell.device, cell.dtype), self.source)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The values are the source's."""
        return self._facts(verify.compare(on_host[0], self.values, self.allowed))

    def _memory(self, result: Any) -> CaseFacts:
        """The values stay as they are when the source changes.

        Raises:
            NotACopy: they change with it.
        """
        before = np.copy(self.framework.to_numpy(result))
        kept = self.source.copy()
        self.source[:] = [0.0] * len(self.source)
        try:
            verify.copied(before, self.framework.to_numpy(result))
        finally:
            self.source[:] = kept
        is_array = isinstance(self.source, np.ndarray)
        addresses = {int(self.source.ctypes.data)} if is_array else set()
        return CaseFacts(result_is_view=self._is_view([result], addresses))

    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        """The call stays; the source has other values."""
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        (self.values,) = operands
        self.source[:] = self.operation.source(self.values)
        return self.run


class Forward(_OperationWork):
    """The operation on arrays that lie on the device."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        self._placed = Inputs(framework, cell.device, cell.dtype)
        self.inputs = [self._placed.place(x) for x in super()._operands(changed=False)]
        self.run = self._bound()

    def _bound(self) -> BoundCall:
        return self.framework.forward(self.implementation, self.inputs, self.cell.execution)

    @property
    def implementation(self) -> Any:
        """The operation's own for this framework, or the framework's for the operation."""
        operation = self.operation
        own = operation.implementations.get(self.framework.name)
        return own or self.framework.implementation(operation.name)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The result is the NumPy reference's."""
        values = self._values(on_host)
        return self._facts(verify.compare(on_host[0], self._reference(values), self.allowed))

    def _values(self, on_host: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The inputs for the reference, where there is room to compare these results with it."""
        values = self._placed.values()
        reading.fits(values, on_host)
        return values

    def _reference(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.asarray(self.operation.reference(*values))

    def _memory(self, result: Any) -> CaseFacts:
        """Whether an array of the result begins where an input does."""
        is_view = self._is_view(self.arrays(result), self._placed.addresses())
        return CaseFacts(result_is_view=is_view)

    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        return self._placed.change(self.run, operands)

    def _check_inputs(self) -> None:
        self._placed.check()


class Backward(Forward):
    """The forward pass and the gradient by every floating-point input."""

    def _bound(self) -> BoundCall:
        self.variables = [i for i, x in enumerate(super()._operands(changed=False)) if is_float(x)]
        # Kept for the first verification: gelu's takes a quarter of a second.
        self._known: NDArray[Any] | None = self._reference(self._placed.values())
        self._shape = self._known.shape
        self.cotangent = self._placed.place(self._cotangent(_COTANGENT_SEED))
        return self.framework.backward(
            self.implementation, self.inputs, self.variables, self.cotangent, self.cell.execution
        )

    def _cotangent(self, seed: int) -> NDArray[Any]:
        numbers = np.asarray(np.random.default_rng(seed).standard_normal(self._shape))
        return in_dtype(numbers, self.cell.dtype)

    def _operands(self, *, changed: bool) -> list[NDArray[Any]]:
        """With the cotangent behind them."""
        seed = _CHANGED_COTANGENT_SEED if changed else _COTANGENT_SEED
        return [*super()._operands(changed=changed), self._cotangent(seed)]

    def arrays(self, result: Any) -> Sequence[Array]:
        """The result of the forward pass, and one gradient for each variable.

        Raises:
            WrongGradient: it is something else.
        """
        match result:
            case [value, [*gradients]]:
                verify.count(gradients, self.variables)
                return [value, *gradients]
        raise WrongGradient(
            f"backward's call returned a {type(result).__name__}, and not the result with the "
            "gradients; return (result, [gradient, ...]), so that the forward pass cannot be left "
            "out"
        )

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The result is the reference's, and every gradient has the slope of its difference."""
        *values, cotangent = self._values(on_host)
        value, *gradients = on_host
        known, self._known = self._known, None
        expected = self._reference(values) if known is None else known
        found = verify.compare(value, expected, self.allowed)
        reference = self.operation.reference
        error = verify.gradient(
            gradients, reference, values, self.variables, cotangent, self.allowed
        )
        self._check_digits(gradients)
        return self._facts(found, error)

    def _check_digits(self, gradients: Sequence[NDArray[Any]]) -> None:
        """A difference is off by more than float32 is; digits tell what it cannot.

        Raises:
            WrongGradient: a gradient of float64 has those of float32.
        """
        if self.cell.dtype != "float64":
            return
        for position, gradient in zip(self.variables, gradients, strict=True):
            if precision.is_float32(gradient):
                raise WrongGradient(
                    f"the gradient of input {position} has no more digits than float32 has, and "
                    "the case is in float64: it was computed in float32"
                )


def _worse(found: CaseFacts, more: CaseFacts) -> CaseFacts:
    """What was found of a piece of work, and what another verification of it found.

    Args:
        found: errors, precision, and whether memory is shared.
        more: the same, or the last of these alone.
    """
    views = (found.result_is_view, more.result_is_view)
    worse = found | CaseFacts(result_is_view=None if None in views else any(views))
    if more.max_relative_error is not None:
        errors = found.max_relative_error or 0.0, more.max_relative_error
        bits = [b for b in (found.precision_bits, more.precision_bits) if b is not None]
        worse |= CaseFacts(max_relative_error=max(errors), precision_bits=min(bits))
    return worse
