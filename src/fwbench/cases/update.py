"""Updates: an operation that overwrites some of its operands, as a step of an optimiser does.

The first call is verified on the operands as they were placed. The timed calls go on with what the
calls before them have left, as steps of a training do, and the verification after them writes fresh
values first. Where arrays cannot be written a call returns new ones, and every call begins with the
same operands.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from numpy.typing import NDArray

from fwbench.cases.forward import Forward, listed
from fwbench.cases.inputs import digest
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Array, BoundCall
from fwbench.records.facts import CaseFacts


class InPlaceUpdate(Forward):
    """An operation that overwrites operands."""

    #: Calls in place since the operands were written.
    _steps = 1
    #: Whether they were, since the last call that was timed.
    _written = False

    def arrays(self, result: Any) -> Sequence[Array]:
        """What is returned, or what was overwritten if nothing is."""
        return self._placed.overwritten() if result is None else super().arrays(result)

    def _key(self, what: str, inputs: int) -> Hashable:
        """With the number of steps."""
        return super()._key(what, inputs), self._steps

    def _results(self, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The operands after all steps."""
        operands = self.layout.restore(values)
        for _ in range(self._steps):
            results = listed(self.operation.reference(*operands, *self.parameters))
            for position, updated in zip(self.operation.updates, results, strict=True):
                operands[position] = updated
        return results

    def _memory(self, result: Any) -> CaseFacts:
        """Every element is written: in place is not a view, which would cost nothing."""
        return CaseFacts(result_is_view=False)

    def _verify_last(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """In place, calls have gone on from one another, so the last result is not the first."""
        if result is not None:
            return super()._verify_last(result, right)
        if self._written:  # on a busy machine all is verified again, and this is what that left
            return CaseFacts(result_is_view=False)
        self._check_inputs()
        # Not each by itself: in low precision a state may be too coarse for a step.
        if [digest(array) for array in self._read(result)] == right:
            raise WrongResult("what it overwrites is as the first call left it: no step was made")
        return CaseFacts(result_is_view=False)

    def _timed_on(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        """Without counting calls: only those that are verified are counted."""
        return super()._change(operands)

    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        """The call counts itself: whoever times it may make it twice."""
        run = super()._change(operands)
        self._steps, self._written = 0, True

        def counted() -> Any:
            result = run()
            # New arrays are those of one step, however often it was made.
            self._steps = self._steps + 1 if result is None else 1
            return result

        return counted
