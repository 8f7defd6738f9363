"""Work that is bound to its inputs, and knows its right result."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from numpy.typing import NDArray

from fwbench.cases import precision, verify
from fwbench.cases.inputs import (
    OPERAND_CACHE,
    Change,
    Inputs,
    check_device,
    digest,
    drawn_operands,
    in_dtype,
    is_inexact,
    read_result,
)
from fwbench.cases.verify import Deviation
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.records.facts import CaseFacts
from fwbench.terms.names import real_dtype
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import INPUTS, ZEROS, Operation, zeros

_LAST = "the result of the last timed call is wrong though the first was right"
_CHOSEN = "a call on one of the sets of operands that were timed is wrong"
_CHANGED = (
    "a call on changed inputs is wrong though the first call was right, so results are kept from "
    "earlier calls, computed when the work is bound, or too inexact for some inputs"
)
_RESTORED = (
    "a call on the first inputs, after one on others, is wrong though the first call was right, so "
    "results are kept from earlier calls or work is skipped"
)

#: ``others(seed)`` places the first inputs for bound work, with data that are drawn anew by the
#: seed; 0 for those of the first.
Others = Callable[[int], Change]

#: ``turns(others)`` makes calls on changing inputs. It stops once, for results to be verified.
Turns = Callable[[Others], Iterable[None]]

NO_TURNS: Turns = lambda _: (None,)  # noqa: E731 (of a type)


class Work(ABC):
    """Work that is bound to its inputs, and knows what its result must be."""

    run: BoundCall
    #: Done before each round, outside its time; None for nothing.
    before: BoundCall | None = None
    #: Reads all that calls change and do not return; None where results are all of it.
    read_state: BoundCall | None = None
    #: Number of pieces that a call makes; one of them is read.
    pieces = 1
    #: Size of the data that are new in each turn.
    data_bytes = 0
    #: Position among ``runs`` of the call that was timed last.
    last = 0
    #: Calls since :meth:`begin`; 0 where that is not known.
    timed_calls = 0
    _sets: Sequence[tuple[Inputs, BoundCall]] = ()

    @property
    def runs(self) -> Sequence[BoundCall]:
        """The calls that are timed by turns: of the first operands, and of any others."""
        return [self.run, *(run for _, run in self._sets[1:])]

    @abstractmethod
    def verify(self, result: Any) -> CaseFacts:
        """Compare the result of a run with what it must be.

        Returns:
            What was found, for the record.

        Raises:
            VerificationError: the result is wrong.
        """

    def prepare(self) -> None:  # noqa: B027 (nothing to do, for most)
        """Give verified work the inputs to be timed with, where they are others."""

    def begin(self) -> None:  # noqa: B027 (nothing to do, for most)
        """Note what timed calls go on from: they begin now."""

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """Verify what was timed, and what the same call does with changed inputs.

        Args:
            last: the result of the last call that was timed.
            turns: makes calls on inputs that change, before and after.

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

    def is_readable(self, result: Any) -> bool:
        """True if anything may be left to compute in a result until it is read."""
        return bool(self.arrays(result))

    def plain(self, result: Any) -> Any:
        """The same result in containers of Python's own, which take nothing but their size."""
        return result


class RepeatedWork(Work):
    """Work on operands that change after it was timed, to see that each call does it."""

    #: The inputs, and the call that was bound to them first.
    _placed: Inputs
    _first: BoundCall

    def __init__(self, framework: Framework, device: str = "") -> None:
        self.framework = framework
        #: Where results must be; empty where that is checked in another way.
        self._device = device
        self._findings = CaseFacts()
        self._right: list[int] = []

    def arrays(self, result: Any) -> Sequence[Array]:
        """The result, or each of several results."""
        return [*result] if isinstance(result, list | tuple) else [result]

    def plain(self, result: Any) -> Any:
        """A list of several results, whatever class of list or tuple they were returned in."""
        return [*result] if isinstance(result, list | tuple) else result

    def verify(self, result: Any) -> CaseFacts:
        """The values are the reference's; also tells whether memory is shared."""
        on_host = self._read(result)
        self._findings = self._compare(on_host) | self._memory(result) | self._moved(on_host)
        self._right = [digest(array) for array in on_host]
        return self._findings

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """The last result is right, and so are a call on changed inputs and one on the first."""
        facts, right = self._findings, self._right
        for context, result in self._timed(last):
            with verify.within(context):
                facts = _worse(facts, self._verify_last(result, right))
        operands = self._operands(changed=False)
        for _ in turns(partial(self._others, operands)):
            with verify.within(_CHANGED):
                run = self._change(self._operands(changed=True))()
                facts = _worse(facts, self.verify(run()))
            with verify.within(_RESTORED):
                run = self._change(operands)()
                facts = _worse(facts, self._verify_same(run(), right))
        return facts

    def _timed(self, last: Any) -> Iterator[tuple[str, Any]]:
        """The last result, and one of a set that cannot be known before, with their inputs."""
        if self._sets:
            self._placed, _ = self._sets[self.last]
        yield _LAST, last
        if self._sets[1:]:
            self._placed, run = secrets.choice(self._sets)
            yield _CHOSEN, run()
            self._placed, _ = self._sets[0]

    @property
    def data_bytes(self) -> int:  # type: ignore[override]
        """The operands that are new in each turn."""
        operands = self._operands(changed=False)
        return sum(operands[position].nbytes for position in self._data(operands))

    def _others(self, first: Sequence[NDArray[Any]], seed: int) -> Change:
        operands = [*first]
        if seed:
            drawn = self._redrawn(seed)
            for position in self._data(first) or range(len(first)):
                operands[position] = drawn[position]
        return self._change(operands)

    @abstractmethod
    def _redrawn(self, seed: int) -> list[NDArray[Any]]:
        """The operands of another seed: no code can tell them from changed ones."""

    def _data(self, operands: Sequence[NDArray[Any]]) -> list[int]:
        """Positions of the operands that are new in each turn: the first that has numbers, or all.

        Weights stay: oneDNN's convolutions lay them out in the first call, and keep them so.
        """
        return [position for position, x in enumerate(operands) if is_inexact(x)][:1]

    def _verify_last(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """The last timed call had the inputs of the first."""
        return self._verify_same(result, right)

    def _verify_same(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """Verify like :meth:`verify`, faster: values of a right result are right."""
        self._check_inputs()
        if [digest(array) for array in self._read(result)] == right:
            return self._memory(result)
        return self.verify(result)

    def _read(self, result: Any) -> list[NDArray[Any]]:
        arrays = self.arrays(result)
        for array in arrays:
            check_device(self.framework, array, self._device, "the result")
        return [read_result(self.framework, array) for array in arrays]

    @abstractmethod
    def _operands(self, *, changed: bool) -> list[NDArray[Any]]:
        """The operands, or others of the same shapes."""

    @abstractmethod
    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """Outcome of comparing a result with its reference."""

    def _memory(self, result: Any) -> CaseFacts:
        """Fact whether the result shares memory with its inputs, where that is known."""
        return CaseFacts()

    def _moved(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """Bytes that a call moves, where they differ from the workload's declaration."""
        return CaseFacts()

    def _change(self, operands: Sequence[NDArray[Any]]) -> Change:
        """Place other values for the inputs."""
        return self._placed.change(self._first, operands)

    def _check_inputs(self) -> None:
        """The inputs are as they were placed."""
        self._placed.check()


class OperationWork(RepeatedWork):
    """An operation's."""

    #: Of the changed operands, drawn when fwbench was imported: no result that is timed can have
    #: been computed before.
    changed_seed = secrets.randbits(32)

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(framework, cell.device)
        self.cell = cell
        self.operation = cast("Operation", cell.workload)
        self.terms = self.operation.terms(cell.size)
        #: Of its real numbers, and of the parts of its complex ones.
        self.dtype = real_dtype(cell.dtype)
        self.allowed = precision.tolerance(cell, self.terms, self.operation.tolerance)
        self._on_zeros = False

    def prepare(self) -> None:
        """Zeros, where they are asked for: no result of them tells right work from wrong."""
        if self.cell.toggle(INPUTS) == ZEROS:
            self._on_zeros = True
            self.run = self._change(zeros(self._operands(changed=False)))()

    def _verify_last(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """On zeros nothing is compared: calls on changed and on the first inputs come after it."""
        if not self._on_zeros:
            return super()._verify_last(result, right)
        self._check_inputs()
        self._read(result)
        return self._memory(result)

    def _operands(self, *, changed: bool) -> list[NDArray[Any]]:
        return self._drawn(self.changed_seed if changed else 0)

    def _drawn(self, seed: int) -> list[NDArray[Any]]:
        """The operands of a seed; 0 for the first ones."""
        drawn = drawn_operands(self.operation, self.cell.size, seed or None)
        return [in_dtype(x, self.dtype) for x in drawn]

    def _redrawn(self, seed: int) -> list[NDArray[Any]]:
        with OPERAND_CACHE.keeping_nothing():
            return self._drawn(seed)

    def _facts(self, deviation: Deviation, gradient_error: float = 0.0) -> CaseFacts:
        return CaseFacts(
            max_relative_error=max(deviation.largest, gradient_error),
            tolerance=self.allowed,
            precision_bits=precision.bits(self.dtype, deviation.rms, gradient_error, self.terms),
            changed_seed=self.changed_seed,
        )

    def _is_view(self, arrays: Sequence[Array], operands: set[int]) -> bool | None:
        addresses = [self.framework.address(array) for array in arrays]
        return None if None in addresses else not operands.isdisjoint(addresses)


def _worse(facts: CaseFacts, more: CaseFacts) -> CaseFacts:
    """The worse of two findings about a piece of work.

    Args:
        facts: errors, precision, and whether memory is shared.
        more: the same, or the last of these alone.
    """
    views = (facts.result_is_view, more.result_is_view)
    worse = facts | CaseFacts(result_is_view=None if None in views else any(views))
    if more.max_relative_error is not None:
        errors = facts.max_relative_error or 0.0, more.max_relative_error
        bits = [b for b in (facts.precision_bits, more.precision_bits) if b is not None]
        worse |= CaseFacts(max_relative_error=max(errors))
        worse |= CaseFacts(precision_bits=min(bits)) if bits else CaseFacts()
    return worse
