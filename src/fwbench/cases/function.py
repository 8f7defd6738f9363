"""Functions without a reference: verified against themselves, and against others of their kind."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.forward import Forward
from fwbench.cases.inputs import Inputs, digest, drawn_operands, read_result, widest
from fwbench.cases.returned import Kept, Returned, Shelf, check_form, taken_apart
from fwbench.cases.verify import Deviation
from fwbench.cases.work import NO_TURNS, Turns
from fwbench.errors import DeclarationError, UnreadableResult, WrongResult
from fwbench.frameworks.contract import Array, BoundCall, Framework, HostFramework
from fwbench.processes.session import RESULTS_VARIABLE
from fwbench.records.facts import CaseFacts
from fwbench.workloads.function import PLAIN, Function
from fwbench.workloads.grid import Cell

#: So many other inputs are tried before a result is said not to depend on them.
_TRIES = 4

_ALLOWED_MORE = "; if rounding explains it, declare terms=, tolerance= or compare="


class FunctionWork(Forward):
    """A function that is its own reference: a plain call of it, on new arrays."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        self.function = cast("Function", cell.workload)
        beyond = [i for i in self.function.updates if not -1 < i < len(self.inputs)]
        if beyond:
            raise DeclarationError(
                f"{self.function.name} is declared to change its argument {beyond[0]}, and has "
                f"{len(self.inputs)}, from 0 on: correct changes= or inputs="
            )
        if self.function.updates:
            self.before: BoundCall | None = self._placed.restore
        self._first_inputs = self._placed.digests
        self._first_result: Returned | None = None
        self._plain: dict[Sequence[int], Returned] = {}

    @property
    def data_bytes(self) -> int:  # type: ignore[override]
        """All operands: others are drawn for each turn."""
        return sum(operand.nbytes for operand in self._operands(changed=False))

    def _data(self, operands: Sequence[NDArray[Any]]) -> list[int]:
        """None: numbers times a factor may be no inputs of the function."""
        return []

    # Results

    def arrays(self, result: Any) -> Sequence[Array]:
        """The framework's arrays in a result, and those that the call has changed."""
        return [*filter(self._is_array, self._leaves(result)[1])]

    def _is_array(self, leaf: Any) -> bool:
        if isinstance(leaf, bool | int | float | complex | np.generic):
            return False
        return isinstance(self.framework, HostFramework) or not isinstance(leaf, np.ndarray)

    def _leaves(self, result: Any, placed: Inputs | None = None) -> tuple[Any, list[Any], str]:
        """A result with what the call has changed, the arrays and numbers in it, and its form."""
        changed = (placed or self._placed).overwritten()
        if result is None and not changed:
            raise WrongResult(
                f"{self.function.name} returned None: return the result, or declare the arguments "
                'that it changes: fwbench.function(..., changes="x")'
            )
        whole = result if not changed else tuple(changed) if result is None else (result, *changed)
        leaves: list[Any] = []
        return whole, leaves, taken_apart(whole, leaves)

    def _returned(self, result: Any, placed: Inputs | None = None) -> Returned:
        """A result on the host, in memory of its own."""
        whole, leaves, form = self._leaves(result, placed)
        return Returned(form, [*map(self._value, leaves)], whole)

    def _value(self, leaf: Any) -> NDArray[Any]:
        if not self._is_array(leaf):
            return np.array(leaf)
        try:
            return np.array(read_result(self.framework, leaf))
        except UnreadableResult as error:
            raise UnreadableResult(
                f"{error}; return arrays, numbers and texts, or tuples, lists, dicts and "
                "dataclasses of them"
            ) from None

    def _read(self, result: Any) -> list[NDArray[Any]]:
        return self._returned(result).values

    def _memory(self, result: Any) -> CaseFacts:
        """Arguments that are changed are written: they are no views."""
        return CaseFacts(result_is_view=False) if self.function.updates else super()._memory(result)

    # Verification

    def verify(self, result: Any) -> CaseFacts:
        """A result is that of a plain call on the same numbers, and others' too."""
        returned = self._returned(result)
        is_first = self._first_result is None
        if is_first:
            self._check_drawn()
        self._findings = self._compared(returned) | self._memory(result)
        self._right = [*map(digest, returned.values)]
        if is_first:
            self._first_result = returned._replace(whole=None)  # which would stay in memory
            self._findings |= self._against_others(returned)
        return self._findings

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """Calls that change arguments are not timed on further ones; else as of an operation."""
        return super().verify_again(last, NO_TURNS if self.function.updates else turns)

    def _verify_last(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """Calls may have gone on from changed arguments: once more as they were."""
        if self.function.updates:
            self._placed.restore()
            result = self.run()
        return super()._verify_last(result, right)

    def _check_drawn(self) -> None:
        """Check that other processes draw the same inputs."""
        drawn = drawn_operands(self.function, self.cell.size)
        if [*map(digest, drawn)] != [*map(digest, self.function.operands(self.cell.size))]:
            raise DeclarationError(
                f"inputs= of {self.function.name} draws other numbers each time for the same size: "
                "draw them from the generator that it is given"
            )

    def _compared(self, returned: Returned) -> CaseFacts:
        try:
            inputs = self._checked(returned.arrays)
        except WrongResult as error:
            raise WrongResult(f"{error}; or declare what it changes: changes=") from None
        plain = self._plain_result(inputs)
        try:
            deviation = self._held(returned, plain, self.allowed, "plain call on new arrays")
        except WrongResult as error:
            if self._first_result is not None or self.cell.execution != PLAIN:
                raise WrongResult(f"{error}{_ALLOWED_MORE}") from None
            raise WrongResult(
                f"two calls of {self.function.name} on the same inputs differ: have it begin with "
                f"the same state and seed in each, or declare random=True ({error})"
            ) from None
        self._check_change(returned)
        facts = CaseFacts(
            verified_against="its own plain call",
            changed_seed=self.changed_seed,
            inputs_digest=self._inputs_digest,
        )
        if deviation is None:
            return facts
        return facts | CaseFacts(max_relative_error=deviation.largest, tolerance=self.allowed)

    @property
    def _inputs_digest(self) -> int:
        return digest(np.array(self._first_inputs, np.int64))

    def _plain_result(self, inputs: Sequence[NDArray[Any]]) -> Returned:
        """The result of a plain call on new arrays with the numbers that the inputs have now."""
        placed = self._placed.digests
        if placed not in self._plain:
            self._plain[placed] = self._called(inputs)._replace(whole=None)
        return self._plain[placed]

    def _called(self, inputs: Sequence[NDArray[Any]]) -> Returned:
        placed = Inputs(self.framework, self.cell.device, self.dtype)
        arrays = [
            placed.place(x, overwritten=position in self.function.updates)
            for position, x in enumerate(inputs)
        ]
        result = self.framework.forward(self.implementation, arrays, PLAIN)()
        return self._returned(result, placed)

    def _check_change(self, returned: Returned) -> None:
        """Check that a result on changed inputs is another one, at least for some of them."""
        first, changed = self._first_result, self._placed.digests != self._first_inputs
        free = self.function.constant or self.function.random
        if first is None or free or not changed or not returned.equals(first):
            return
        tries = (self._called(self._drawn(seed)) for seed in range(2, 2 + _TRIES))
        if all(other.equals(first) for other in tries):
            raise WrongResult(
                f"the result of {self.function.name} stays the same when its inputs change: "
                "compute with all of them in every call, or declare constant=True"
            )

    def _held(
        self, returned: Returned, expected: Returned, allowed: float, by: str
    ) -> Deviation | None:
        """Deviation from another result; None where no numbers are compared."""
        check_form(returned.loose, expected.loose, by)
        if self.function.compare is not None:
            self._ask(returned, expected.arrays, by)
            return None
        if self.function.random:
            for actual, other in zip(returned.arrays, expected.arrays, strict=True):
                verify.check_shape(actual, other.shape, by)
            return None
        return _worst(returned.arrays, expected.arrays, allowed, by)

    def _ask(self, returned: Returned, expected: Sequence[NDArray[Any]], by: str) -> None:
        """Have the user's function compare."""
        assert self.function.compare is not None  # noqa: S101 (who calls has looked)
        both = returned.with_arrays(returned.arrays), returned.with_arrays(expected)
        says = f"compare= of {self.function.name} says, beside the {by}"
        try:
            said = self.function.compare(*both)
        except Exception as error:
            why = str(error).strip().partition("\n")[0]
            raise WrongResult(f"{says}: {why or type(error).__name__}") from error
        if isinstance(said, str) or not (said is None or np.all(said)):
            raise WrongResult(f"{says}: {said or repr(said)}")

    # Others

    def _against_others(self, returned: Returned) -> CaseFacts:
        """Leave the result for others, and compare with what they have left."""
        is_free = self.function.random and self.function.compare is None
        if is_free or RESULTS_VARIABLE not in os.environ:
            return CaseFacts()
        shelf = Shelf(self.cell)
        whole = self.function.compare is not None
        own = Kept.of(returned, self._inputs_digest, self.allowed, whole=whole)
        own.write(shelf.file)
        for name, file in shelf.other_frameworks([*self.function.implementations]):
            other = Kept.read(file)
            if other.inputs == own.inputs:
                with verify.within(f"{self.framework.name} and {name} do not compute the same"):
                    check_form(own.loose, other.loose, f"result of {name}")
                    self._held_kept(returned, own, other, f"result of {name}")
            break
        there = shelf.other_side()
        return CaseFacts() if there is None else self._beside(returned, own, shelf.side, *there)

    def _beside(
        self, returned: Returned, own: Kept, side: str, other_side: str, file: Path
    ) -> CaseFacts:
        """Facts on the result of the other side."""
        other, by = Kept.read(file), f"{other_side}'s result"
        if other.inputs != own.inputs:
            return CaseFacts()
        try:
            if self.function.compare is None:
                check_form(own.kinds, other.kinds, by)
            check_form(own.loose, other.loose, by)
            deviation = self._held_kept(returned, own, other, by)
        except WrongResult as error:
            what = str(error).removeprefix("the result is wrong: ")
            return CaseFacts(different_results=f"in the {side}: {what}")
        return CaseFacts(side_error=0.0 if deviation is None else deviation.largest)

    def _held_kept(self, returned: Returned, own: Kept, other: Kept, by: str) -> Deviation | None:
        """Deviation from a result in a file, by the stricter tolerance of both."""
        if self.function.compare is not None:
            self._ask(returned, other.arrays, by)
            return None
        if own.digests == other.digests:
            return Deviation(0.0, 0.0)
        allowed = min(own.allowed, other.allowed)
        deviation = _worst(own.arrays, other.arrays, allowed, by)
        own.check_sums(other, allowed, by)
        return deviation


def _worst(
    actual: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]], allowed: float, by: str
) -> Deviation:
    """The larger of the deviations of several arrays."""
    deviations = [
        verify.compare(own, widest(other), allowed, by)
        for own, other in zip(actual, expected, strict=True)
    ]
    return max(deviations, default=Deviation(0.0, 0.0))
