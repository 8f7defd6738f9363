"""Operations on arrays on the device, in-place updates, copies between host and GPU, creation."""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import precision, verify
from fwbench.cases.inputs import OPERAND_CACHE, Change, Inputs, check_fits, digest, widest
from fwbench.cases.verify import Deviation
from fwbench.cases.work import OperationWork
from fwbench.errors import DeclarationError, WrongResult
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.frameworks.gpus import PINNED
from fwbench.frameworks.table import layout_of
from fwbench.measure.clock import repeated
from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import DEVICE, Implementation

#: Processors have forgotten branches after this many other numbers (docs/measuring.md).
_FORGOTTEN, _OTHERS_AT_MOST = 200_000, 255

#: No more are drawn after this time: inputs of users' functions may be read from files.
_DRAWN_S = 1.0


class Forward(OperationWork):
    """The operation on arrays on the device."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        self.parameters = self.operation.parameters(cell.size)
        declared = self.operation.implementations.get(framework.name)
        implementation = declared or framework.implementation(self.operation.name)
        self.layout = layout_of(implementation)
        switches = {name: cell.toggle(name) for name in self.operation.switched_by}

        def function(namespace: Any) -> Any:
            made = implementation(namespace, *self.parameters, **switches)
            if made is None:
                raise DeclarationError(
                    f"what implements {self.operation.name} in {framework.name} returned None; "
                    "return the function to measure"
                )
            return made

        self.implementation: Implementation = function
        self._placed = Inputs(framework, cell.device, self.dtype)
        laid = Forward._drawn(self, 0)  # without what others have behind them
        self._wider_bytes = self._wider(laid)
        self.inputs = [
            self._placed.place(x, overwritten=position in self.operation.updates)
            for position, x in enumerate(laid)
        ]
        self.run = self._first = self._bound()
        self._sets = [(self._placed, self.run)]

    def prepare(self) -> None:
        """And more sets of operands, where a CPU would learn the branches of a single one."""
        super().prepare()
        operation, is_fixed = self.operation, self._on_zeros or bool(self.operation.updates)
        if operation.branching and self.cell.device == "cpu" and not is_fixed:
            elements = max((x.size for x in self._drawn(0)), default=0) or 3 * _FORGOTTEN
            # Not 1, the seed of changed operands of gradients.
            seeds = range(2, 2 + min(_OTHERS_AT_MOST, round(_FORGOTTEN / elements)))
            ends_s = time.monotonic() + _DRAWN_S
            drawn = (self._drawn(seed) for seed in seeds if time.monotonic() < ends_s)
            with suppress(DeclarationError):  # the call can be given no others
                another = partial(self._placed.another, self.run)
                self._sets = [*self._sets, *map(another, drawn)]

    def _drawn(self, seed: int) -> list[NDArray[Any]]:
        """All inputs, as they are in the framework."""
        return self.layout.place(super()._drawn(seed))

    def _bound(self) -> BoundCall:
        return self.framework.forward(self.implementation, self.inputs, self.cell.execution)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        inputs = self._checked(on_host)
        return self._facts(self._compare_results(on_host, self._reference(inputs)))

    def _compare_results(
        self, on_host: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]
    ) -> Deviation:
        check_count(on_host, expected)
        results = self.layout.restore_results(on_host)
        compared = self.operation.compared
        if compared is not None:
            # Of the same shapes: what is made of others has no meaning.
            for actual, reference in zip(results, expected, strict=True):
                verify.check_shape(actual, reference.shape)
            results, expected = [*compared(*results)], compared(*expected)
        deviations = [
            verify.compare(actual, reference, self.allowed)
            for actual, reference in zip(results, expected, strict=True)
        ]
        return Deviation(
            max(deviation.largest for deviation in deviations),
            max(deviation.rms for deviation in deviations),
        )

    def _checked(self, on_host: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The inputs as they were placed, where there is room to compare these results."""
        inputs = self._placed.check()
        check_fits(inputs, on_host)
        return inputs

    def _reference(self, inputs: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        """The results that the inputs must have; all cases with the same inputs share them."""
        return OPERAND_CACHE.arrays(
            self._key("results", len(self.inputs)),
            lambda: self._results([*map(widest, inputs[: len(self.inputs)])]),
        )

    def _key(self, what: str, inputs: int) -> Hashable:
        placed = self._placed.digests[:inputs]
        return what, self.operation, self.cell.size, self.framework.name, placed

    def _results(self, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The results that inputs of the widest dtypes have, as the operation defines them."""
        operands = self.layout.restore(values)
        return listed(self.operation.reference(*operands, *self.parameters))

    def _memory(self, result: Any) -> CaseFacts:
        """Fact whether an array of the result begins where an input does."""
        is_view = self._is_view(self.arrays(result), self._placed.addresses())
        return CaseFacts(result_is_view=is_view)

    def _moved(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The bytes that a call moves, booleans and whole numbers at the widths that they have."""
        cost = self.operation.cost_of(self.cell.direction, self.cell.size)
        if cost is None:
            return CaseFacts()
        declared_bytes = cost.bytes_moved(ITEMSIZE_BYTES[self.dtype])
        return CaseFacts(bytes=declared_bytes + self._wider_bytes + self._wider(on_host))

    def _wider(self, arrays: Iterable[NDArray[Any]]) -> int:
        """Extra bytes of booleans and whole numbers over numbers of the case's dtype."""
        itemsize_bytes = ITEMSIZE_BYTES[self.dtype]
        return sum(x.size * (x.itemsize - itemsize_bytes) for x in arrays if x.dtype.kind in "biu")


def check_count(on_host: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> None:
    """Check that a call has as many results as the reference.

    Raises:
        WrongResult: there are more or fewer.
    """
    if len(on_host) != len(expected):
        raise WrongResult(
            f"the call returned {count(len(on_host), 'result')}, the NumPy reference "
            f"{len(expected)}; "
            "the implementation computes something else"
        )


def listed(results: Any) -> list[NDArray[Any]]:
    """Results of a reference as a list: from an array, or several in a tuple or list."""
    return [np.asarray(x) for x in (results if isinstance(results, tuple | list) else (results,))]


#: Steps that are made again at most, and the numbers in which they are, drawn anew each time.
_STEPS, _NUMBERS = 3_000, 64

#: Allowed errors: a unit in the last place for each step, and so many times the tolerance of one
#: step, which may be in an update that is an eighth of the weights. Simulated steps are off by an
#: eighth of that in float32, a third in float16 and a quarter in bfloat16, at most.
_OF_STEP = 8.0


class InPlaceUpdate(Forward):
    """An operation that overwrites operands."""

    def arrays(self, result: Any) -> Sequence[Array]:
        """Returned arrays, or the overwritten ones if none is returned."""
        return self._placed.overwritten() if result is None else super().arrays(result)

    def _memory(self, result: Any) -> CaseFacts:
        """Every element is written: in place is not a view, which would cost nothing."""
        return CaseFacts(result_is_view=False)

    def _verify_last(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """In place, calls have gone on from one another, so the last result is not the first."""
        if result is not None:
            return super()._verify_last(result, right)
        self._check_inputs()
        # Not each by itself: in low precision a state may be too coarse for a step.
        if [digest(array) for array in self._read(result)] == right:
            raise WrongResult("what it overwrites is as the first call left it: no step was made")
        steps = self.timed_calls
        if steps > _STEPS:
            run, steps = self._change(self._operands(changed=False))(), _STEPS
            self.begin()
            repeated(run, steps)()
        if steps and not self._on_zeros:
            self._check_steps(steps)
        return CaseFacts(result_is_view=False)

    def begin(self) -> None:
        """Note some numbers of each operand: all are independent."""
        operands = self._operands(changed=False)
        for position, values in zip(self.operation.updates, self._read(None), strict=True):
            operands[position] = values
        self._chosen = np.random.default_rng().integers(operands[0].size, size=_NUMBERS)
        self._begun = self.layout.restore([*map(self._some, operands)])

    def _some(self, values: NDArray[Any]) -> NDArray[Any]:
        return widest(values.reshape(-1)[self._chosen])

    def _check_steps(self, steps: int) -> None:
        """Check what so many calls have overwritten, in the numbers that were noted."""
        values, updates = [*self._begun], self.operation.updates
        largest = [np.max(np.abs(values[position])) for position in updates]
        for _ in range(steps):
            results = listed(self.operation.reference(*values, *self.parameters))
            for place, result in enumerate(results):
                values[updates[place]] = result
                largest[place] = max(largest[place], np.max(np.abs(result)))
        allowed = _OF_STEP * self.allowed + steps * 2.0 ** -precision.DTYPES[self.dtype]
        after = self.layout.restore_results([*map(self._some, self._read(None))])
        for position, actual, size in zip(updates, after, largest, strict=True):
            off = float(np.max(np.abs(actual - values[position]))) / size
            if not off <= allowed:
                raise WrongResult(
                    f"{count(steps, 'call')} did not make as many steps: input {position}, which "
                    f"they overwrite, is off by {off:.3g} of its size; {allowed:.3g} is allowed"
                )

    def _data(self, operands: Sequence[NDArray[Any]]) -> list[int]:
        return sorted({*super()._data(operands), *self.operation.updates})


class Copy(OperationWork):
    """A copy of an array from the host to a GPU, or back."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        self.allowed = 0.0  # a copy rounds nothing
        self._device = ""  # its place has a kind of memory, too
        pinned = cell.toggle("pinned") == "on"
        self._copies = framework.copier(cell.device, pinned=pinned)
        host = PINNED if pinned else "cpu"
        if self.operation.copies_to == DEVICE:
            self._from, self._to, call = host, cell.device, self._copies.to_device
            self._placed = Inputs(framework, cell.device, self.dtype, self._copies.on_host)
        else:
            self._from, self._to, call = cell.device, host, self._copies.to_host
            self._placed = Inputs(framework, cell.device, self.dtype)
        (values,) = self._operands(changed=False)
        array = self._placed.place(values)
        self._check_place("what is copied", array, self._from)
        if self._to == host and self._copies.renew is not None:
            self.before = partial(self._renew, self._copies.renew)
        self.run = self._first = partial(call, array)

    def _renew(self, renew: Callable[[Array], Any]) -> None:
        (array,) = self._placed.current
        renew(array)

    def _check_place(self, what: str, array: Array, expected: str) -> None:
        place = self._copies.place(array)
        if place != expected:
            raise WrongResult(
                f"{what} is in the memory of {place} instead of {expected}, so that other memory "
                "is copied than was asked for"
            )

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        (values,) = expected = self._placed.check()
        check_count(on_host, expected)
        return self._facts(
            verify.compare(on_host[0], values, self.allowed, by="array that was copied")
        )

    def _memory(self, result: Any) -> CaseFacts:
        """The copy is where it must, which is somewhere else, so it is not a view."""
        self._check_place("the copy", result, self._to)
        return CaseFacts(result_is_view=False)


class Creation(OperationWork):
    """An array from host data: verified to be a copy."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        (self.values,) = self._operands(changed=False)
        self.source = self.operation.source(np.array(self.values))
        self.run = self._first = partial(framework.creator(cell.device, cell.dtype), self.source)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        return self._facts(verify.compare(on_host[0], self.values, self.allowed))

    def _memory(self, result: Any) -> CaseFacts:
        """The values stay as they are when the source changes."""
        before = np.copy(self.framework.to_numpy(result))
        values = self.source.copy()
        self.source[:] = [0.0] * len(self.source)
        try:
            verify.copied(before, self.framework.to_numpy(result))
        finally:
            self.source[:] = values
        is_array = isinstance(self.source, np.ndarray)
        addresses = {int(self.source.ctypes.data)} if is_array else set()
        return CaseFacts(result_is_view=self._is_view([result], addresses))

    def _change(self, operands: Sequence[NDArray[Any]]) -> Change:
        """The call stays; the source has other values."""
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        (self.values,) = operands
        source = self.operation.source(np.array(self.values))

        def switch() -> BoundCall:
            self.source[:] = source
            return self.run

        return switch

    def _check_inputs(self) -> None:
        """Nothing: the source itself is changed with the operands."""
