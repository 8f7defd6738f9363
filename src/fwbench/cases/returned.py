"""Results of functions, taken apart into arrays, and kept for those who compute the same elsewhere.

A case of a function leaves its result in the folder that :data:`RESULTS_VARIABLE` names, for the
cases of other frameworks, and in ``fwbench ab`` for the other side. Whoever comes later compares:
each leaves its own result before it looks for others, so of two that are alive at once one at least
sees the other. Of a large result a sample is left, and what its numbers add up to.
"""

import dataclasses
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fwbench.cases.inputs import digest
from fwbench.errors import WrongResult
from fwbench.processes.session import RESULTS_VARIABLE, SIDE_VARIABLE, SIDES
from fwbench.terms.names import framework_of
from fwbench.workloads.grid import Cell

#: The place of an array in the form of a result.
_ARRAY = "\N{BULLET}"

#: As many bytes of a result are left, at most.
_KEPT_BYTES = 4 * 2**20

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
    if result is None or isinstance(result, str | bytes):
        return repr(result)
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
    return _ARRAY


def _parts(result: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or a named tuple; None of anything else."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return result._asdict() if hasattr(result, "_asdict") else None


def _sorted(result: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The items of a dict, in an order that compilers do not change."""
    return sorted(result.items(), key=lambda item: repr(item[0]))


def _made_again(result: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    if result is None or isinstance(result, str | bytes):
        return result
    if (parts := _parts(result)) is not None:
        again = {name: _made_again(value, arrays) for name, value in parts.items()}
        is_tuple = isinstance(result, tuple)
        return type(result)(**again) if is_tuple else dataclasses.replace(result, **again)
    if isinstance(result, dict):
        return {key: _made_again(value, arrays) for key, value in _sorted(result)}
    if isinstance(result, list | tuple):
        kind = list if isinstance(result, list) else tuple
        return kind(_made_again(value, arrays) for value in result)
    return next(arrays)


def check_form(actual: str, expected: str, by: str) -> None:
    """Check that results have the same form.

    Raises:
        WrongResult: they do not.
    """
    if actual != expected:
        raise WrongResult(f"the result is {_short(actual)}, and the {by} {_short(expected)}")


def _short(text: str) -> str:
    shown = text.replace(_ARRAY, "array")
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
        """The part of a result that is left.

        Args:
            whole: whether all of it is left, however large.
        """
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
