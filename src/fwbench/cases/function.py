"""Functions without a reference: verified against themselves, and against others of their kind.

Results are taken apart into arrays, and kept for those who compute the same elsewhere. A case of a
function leaves its result in the folder that :data:`RESULTS_VARIABLE` names, for the cases of other
frameworks, and in ``fwbench ab`` for the other side. Whoever comes later compares: each leaves its
own result before it looks for others, so of two that are alive at once one at least sees the other.
Of a large result a sample is left, and what its numbers add up to.
"""

import copy
import dataclasses
import inspect
import numbers
import os
import re
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.forward import Forward
from fwbench.cases.inputs import Inputs, digest, drawn_operands, is_inexact, read_result, widest
from fwbench.cases.verify import Deviation
from fwbench.errors import DeclarationError, UnreadableResult, WrongResult
from fwbench.frameworks.contract import Array, BoundCall, Framework, HostFramework
from fwbench.processes.session import RESULTS_VARIABLE, SIDE_VARIABLE, SIDES
from fwbench.records.facts import CaseFacts
from fwbench.terms.names import framework_of
from fwbench.workloads.function import PLAIN, Function
from fwbench.workloads.grid import Cell

#: So many other inputs are tried before a result is said not to depend on them: a coin, or a truth
#: value, may fall on one side for some time.
_TRIES = 30

_ALLOWED_MORE = "; if rounding explains it, declare terms=, tolerance= or compare="

#: The place of an array in the form of a result.
_ARRAY = "\N{BULLET}"

#: Characters before and after the names of columns, which are in ASCII there.
_LABELS = "\N{LEFT-POINTING ANGLE BRACKET}\N{RIGHT-POINTING ANGLE BRACKET}"

#: As many bytes of a result are left, at most.
_KEPT_BYTES = 4 * 2**20

#: Whole numbers are held in 64 bits.
_HELD = 2**63

#: Texts that a message shows are no longer.
_SHOWN = 80


class Returned(NamedTuple):
    """A result on the host."""

    #: Everything but the arrays and numbers: types, names, texts.
    form: str
    arrays: list[NDArray[Any]]
    #: The result, to be made again with other arrays.
    whole: Any

    @property
    def loose(self) -> str:
        """The form, in which a list is as good as a tuple, which is up to a framework."""
        return self.form.replace("[", "(").replace("]", ")")

    @property
    def kinds(self) -> str:
        """The form with dtypes and shapes, as people read it: ``(float32[3, 4], int64[])``."""
        each = iter(f"{array.dtype}{[*array.shape]}" for array in self.arrays)
        return re.sub(_ARRAY, lambda _: next(each), self.form)

    @property
    def values(self) -> list[NDArray[Any]]:
        """The arrays, and the form as one more: equal ones are equal results."""
        return [*self.arrays, np.frombuffer(self.form.encode(), np.uint8)]

    def with_arrays(self, arrays: Sequence[NDArray[Any]]) -> Any:
        """The result as it was returned, with these in place of its arrays."""
        return _made_again(self.whole, iter(arrays))

    def equals(self, other: Self) -> bool:
        """True if every number is the same; NaNs are."""
        pairs = zip(self.values, other.values, strict=False)
        return [digest(x) for x, _ in pairs] == [*map(digest, other.values)]


def taken_apart(result: Any, leaves: list[Any]) -> str:
    """The form of a result; its arrays and numbers are added to the leaves."""
    if (text := _text(result)) is not None:
        return text
    kind = type(result).__name__
    if (parts := _parts(result)) is not None:
        return f"{kind}({', '.join(f'{k}={taken_apart(v, leaves)}' for k, v in parts.items())})"
    if isinstance(result, dict):
        pairs = (f"{key!r}: {taken_apart(value, leaves)}" for key, value in _sorted(result))
        return f"{{{', '.join(pairs)}}}"
    if isinstance(result, list | tuple):
        inside = ", ".join(taken_apart(value, leaves) for value in result)
        return f"[{inside}]" if isinstance(result, list) else f"({inside})"
    leaves.append(result)
    return _labels(result) + _ARRAY


def _labels(result: Any) -> str:
    """The names of the columns of a data frame, or of a series; empty for anything else."""
    if type(result).__module__.partition(".")[0] not in ("pandas", "polars"):
        return ""
    names = getattr(result, "columns", getattr(result, "name", None))
    if names is None:
        return ""
    listed = names.tolist() if hasattr(names, "tolist") else names
    return f"{_LABELS[0]}{listed!a} of {_LABELS[1]}"


def _unlabelled(form: str) -> str:
    """A form without the names of columns."""
    return re.sub("{}.*?{}".format(*_LABELS), "", form)


def _text(result: Any) -> str | None:
    """The form of a text, or of a whole number that no array holds; None of anything else."""
    if result is None:
        return "None"
    # Not by the methods of a class of the user's, which may compute the text.
    if isinstance(result, str):
        return str.__repr__(result)
    if isinstance(result, bytes):
        return bytes.__repr__(result)
    is_large = isinstance(result, int) and not -_HELD <= result < _HELD
    return f"{result:#x}" if is_large else None


def _parts(result: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or a named tuple; None of anything else."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return result._asdict() if hasattr(result, "_asdict") else None


def _sorted(result: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The items of a dict, in an order that compilers do not change."""
    return sorted(result.items(), key=lambda item: repr(item[0]))


def _plain(result: Any) -> Any:
    """A result in containers of Python's own, which compute nothing."""
    if _text(result) is not None:
        return result
    if (parts := _parts(result)) is not None or isinstance(result, dict):
        items = dict(_sorted(result)) if parts is None else parts
        return {name: _plain(value) for name, value in items.items()}
    return [*map(_plain, result)] if isinstance(result, list | tuple) else result


def _made_again(result: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    if _text(result) is not None:
        return result
    if (parts := _parts(result)) is not None:
        again = {name: _made_again(value, arrays) for name, value in parts.items()}
        if isinstance(result, tuple):
            return type(result)(**again)
        made = copy.copy(result)  # dataclasses.replace refuses fields with init=False
        for name, value in again.items():
            object.__setattr__(made, name, value)  # frozen ones, too
        return made
    if isinstance(result, dict):
        return {key: _made_again(value, arrays) for key, value in _sorted(result)}
    if isinstance(result, list | tuple):
        kind = list if isinstance(result, list) else tuple
        return kind(_made_again(value, arrays) for value in result)
    return next(arrays)


def _remedy(leaf: Any) -> str:
    """The change to a function that returns something that is not an array."""
    if inspect.isawaitable(leaf):
        return "await it within the function (`asyncio.run(...)`), and return what that gives"
    if isinstance(leaf, Iterator | AsyncIterator):
        return "iterate it within the function, as by `list(...)`, and return that"
    if isinstance(leaf, numbers.Number):
        return "return floats or whole numbers in place of it, as by `float(...)`"
    return "return arrays, numbers and texts, or tuples, lists, dicts and dataclasses of them"


def check_form(actual: str, expected: str, by: str) -> None:
    """Check that results have the same form.

    Raises:
        WrongResult: they do not.
    """
    if actual != expected:
        raise WrongResult(f"the result is {_short(actual)}, and the {by} {_short(expected)}")


def _short(text: str) -> str:
    shown = text.replace(_ARRAY, "array").translate(dict.fromkeys(map(ord, _LABELS)))
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


class Kept(NamedTuple):
    """A result in a file."""

    #: See :attr:`Returned.kinds`.
    kinds: str
    loose: str
    #: Digest of the inputs.
    inputs: int
    #: The tolerance of who left it.
    allowed: float
    #: All numbers, or a sample of each array at fixed positions.
    arrays: Sequence[NDArray[Any]]
    #: Of the whole arrays.
    digests: Sequence[int]
    #: Of each array: its mean, and its root mean square.
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, returned: Returned, inputs: int, allowed: float, *, whole: bool) -> Self:
        """The part of a result that is left; all of it, however large, if it is ``whole``."""
        arrays = returned.arrays
        share_bytes = _KEPT_BYTES // max(1, len(arrays))
        left = arrays if whole else [_sample(x, share_bytes // x.itemsize) for x in arrays]
        sums = np.array([*map(_sums, arrays)], np.float64)
        digests = [*map(digest, arrays)]
        return cls(returned.kinds, returned.loose, inputs, allowed, left, digests, sums)

    def write(self, file: Path) -> None:
        """Leave it in a file, which is whole as soon as it is there."""
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}.tmp")
        arrays = {f"array{place}": array for place, array in enumerate(self.arrays)}
        texts = {"kinds": np.array(self.kinds), "loose": np.array(self.loose)}
        with unfinished.open("wb") as stream:
            np.savez(
                stream,
                **texts,
                inputs=np.array(self.inputs),
                allowed=np.array(self.allowed),
                digests=np.array(self.digests, np.int64),
                sums=self.sums,
                **arrays,
            )
        unfinished.replace(file)

    @classmethod
    def read(cls, file: Path) -> Self:
        """The content of a file."""
        with np.load(file) as stored:
            places = range(len(stored["digests"]))
            return cls(
                str(stored["kinds"]),
                str(stored["loose"]),
                int(stored["inputs"]),
                float(stored["allowed"]),
                [stored[f"array{place}"] for place in places],
                stored["digests"].tolist(),
                stored["sums"],
            )

    def check_sums(self, other: Self, allowed: float, by: str) -> None:
        """Check that what a sample leaves out adds up to the same.

        Raises:
            WrongResult: it does not.
        """
        for place, (own, others) in enumerate(zip(self.sums, other.sums, strict=True)):
            scale = max(own[1], others[1])
            with np.errstate(invalid="ignore"):
                off = np.max(np.abs(own - others)) / scale if scale else 0.0
            if off > allowed and not np.array_equal(own, others, equal_nan=True):
                raise WrongResult(
                    f"mean and root mean square of array {place} of the result are {own[0]:.9g} "
                    f"and {own[1]:.9g}, of the {by} {others[0]:.9g} and {others[1]:.9g}"
                )


def _sample(array: NDArray[Any], number: int) -> NDArray[Any]:
    """The numbers at fixed positions of an array that has more; else all, in its shape."""
    if array.size <= number:
        return array
    return array.reshape(-1)[np.linspace(0, array.size - 1, number).astype(np.int64)]


def _sums(array: NDArray[Any]) -> tuple[float, float]:
    """Mean and root mean square of the sizes of all finite numbers."""
    sizes = np.abs(array).astype(np.float64).reshape(-1)
    sizes = sizes[np.isfinite(sizes)]
    return (float(np.mean(sizes)), float(np.sqrt(np.mean(sizes**2)))) if sizes.size else (0.0, 0.0)


class Shelf:
    """Place where a case leaves its result, and finds those of others with the same work."""

    def __init__(self, cell: Cell, folder: str | None = None, side: str | None = None) -> None:
        self._folder = Path(folder or os.environ.get(RESULTS_VARIABLE, ""))
        #: Of a comparison; empty where there is none.
        self.side = os.environ.get(SIDE_VARIABLE, "") if side is None else side
        self._cell = cell
        settings = [*cell.toggles, ("device", cell.device)]
        self._way = f"{cell.execution}-{zlib.crc32(repr(settings).encode()):08x}"
        work = f"{cell.workload.name} {cell.dtype} {cell.size}"
        self._work = f"{cell.workload.name}-{zlib.crc32(work.encode()):08x}"

    @property
    def file(self) -> Path:
        """The case's own."""
        return self._of(self.side) / f"{self._cell.framework}+{self._way}.npz"

    def _of(self, side: str) -> Path:
        return self._folder / (side or "session") / self._work

    def other_frameworks(self, order: Sequence[str]) -> Iterator[tuple[str, Path]]:
        """The results of other frameworks, with their names, the first of the order first."""
        files = {file.name.partition("+")[0]: file for file in self._of(self.side).glob("*.npz")}
        files.pop(self._cell.framework, None)
        ranks = {name: rank for rank, name in enumerate(order)}
        for name in sorted(files, key=lambda name: ranks.get(framework_of(name), len(ranks))):
            yield name, files[name]

    def other_side(self) -> tuple[str, Path] | None:
        """The result of the same case on the other side; None if it is not there."""
        if self.side not in SIDES:
            return None
        (other,) = {*SIDES} - {self.side}
        base = framework_of(self._cell.framework)
        for file in sorted(self._of(other).glob(f"*+{self._way}.npz")):
            if framework_of(file.name.partition("+")[0]) == base:
                return other, file
        return None


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
        """All: which of them are weights is not known."""
        return [*range(len(operands))]

    # Results

    def arrays(self, result: Any) -> Sequence[Array]:
        """The framework's arrays in a result, and those that the call has changed."""
        return [*filter(self._is_array, self._leaves(result)[1])]

    def is_readable(self, result: Any) -> bool:
        """And what has parts, which may be computed when they are asked for: numbers, too."""
        has_parts = isinstance(result, dict | list | tuple) or _parts(result) is not None
        return has_parts or super().is_readable(result)

    def plain(self, result: Any) -> Any:
        """The same in dicts and lists."""
        return _plain(result)

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
        if isinstance(leaf, np.ma.MaskedArray):  # what is masked is no result, and the mask is one
            leaf = leaf.filled(np.nan if is_inexact(leaf) else None)  # type: ignore[no-untyped-call]
        if not self._is_array(leaf):
            return np.array(leaf)
        try:
            return np.array(read_result(self.framework, leaf))
        except UnreadableResult as error:
            raise UnreadableResult(f"{error}; {_remedy(leaf)}") from None

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
        if first is None or self.function.constant or not changed or not returned.equals(first):
            return
        tries = (self._called(self._drawn(seed)) for seed in range(2, 2 + _TRIES))
        if all(other.equals(first) for other in tries):
            do = "draw" if self.function.random else "use all inputs"
            error = WrongResult(
                f"{self.function.name} returned the same for other inputs; declare constant=True "
                f"if it may, or {do} in every call"
            )
            error.is_whole = True
            raise error

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
                    mine, others = (_unlabelled(each.loose) for each in (own, other))
                    check_form(mine, others, f"result of {name}")
                    self._held_kept(returned, own, other, f"result of {name}")
            break
        there = shelf.other_side()
        return CaseFacts() if there is None else self._beside(returned, own, shelf.side, *there)

    def _beside(
        self, returned: Returned, own: Kept, side: str, other_side: str, file: Path
    ) -> CaseFacts:
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
