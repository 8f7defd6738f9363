"""The arrays that bound work computes with: placed, read back, and changed once it was timed.

A call on changed inputs shows what a call on the same inputs cannot: that its result was kept from
an earlier call, or was computed when the work was bound. The call is the same one, as the clock saw
it. Where a framework's arrays can be written, their values change in place, under what is bound to
them; where they cannot, the same function is called with new arrays, which is why it must then
be a :class:`functools.partial`.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import psutil
import xxhash
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.errors import (
    DeclarationError,
    TooLargeToVerify,
    UnreadableResult,
    VerificationError,
    WrongResult,
)
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.records.units import gibibytes
from fwbench.terms.names import numpy_dtype
from fwbench.terms.presets import Size
from fwbench.workloads.operation import Operation

#: Gives bound work the inputs that were placed for it, at once; returns the call to make.
Change = Callable[[], BoundCall]

#: Places an array of NumPy's, in a dtype.
Create = Callable[[NDArray[Any], str], Array]


def is_float(array: NDArray[Any]) -> bool:
    """True if an operand has floating-point numbers."""
    return bool(np.issubdtype(array.dtype, np.floating))


def is_inexact(array: NDArray[Any]) -> bool:
    """True if an array has floating-point or complex numbers, which have gradients."""
    return bool(np.issubdtype(array.dtype, np.inexact))


def in_dtype(operand: NDArray[Any], dtype: str) -> NDArray[Any]:
    """A floating-point operand in the dtype of the case, or in float32 where NumPy lacks it.

    Args:
        operand: floating-point, or complex, which has two numbers of the dtype; anything else stays
            as it is.
    """
    known = np.dtype(numpy_dtype(dtype))
    if np.iscomplexobj(operand):
        return np.asarray(operand, dtype=np.result_type(known, np.complex64))
    return np.asarray(operand, dtype=known) if is_float(operand) else operand


def widest(array: NDArray[Any]) -> NDArray[Any]:
    """A copy with floating-point and complex numbers as wide as they can be, for the reference."""
    wide = np.result_type(array, np.float64) if is_inexact(array) else array.dtype
    return array.astype(wide)


def check_device(framework: Framework, array: Array, expected: str, what: str) -> None:
    """Check that an array is on the device of its case, where the framework tells.

    Args:
        expected: the device; empty where there are several, or where it is checked otherwise.

    Raises:
        WrongResult: it is on another one.
    """
    device = framework.device_of(array) if expected else None
    if device not in (None, expected):
        raise WrongResult(
            f"{what} is on {device} instead of {expected}: {framework.name} has computed or kept "
            "it there, so another device would be measured than was asked for"
        )


def digest(array: NDArray[Any]) -> int:
    """Digest of the values of an array, of 53 bits: as many as every reader of JSON keeps.

    Not a cryptographic hash, because results are not forged, nor a CRC, which took twelve times as
    long, and a thirtieth of a session of ``pytest benchmarks``.
    """
    values = np.ascontiguousarray(array)
    kind = xxhash.xxh3_64_intdigest(f"{values.dtype.str} {values.shape}".encode())
    return xxhash.xxh3_64_intdigest(values.reshape(-1).view(np.uint8).data, kind) >> 11


class Inputs:
    """The inputs of one bound call, in the order in which they were placed.

    Args:
        create: ``create(values, dtype)`` places them, if not the framework does by itself.
    """

    def __init__(
        self, framework: Framework, device: str, dtype: str, create: Create | None = None
    ) -> None:
        self._framework = framework
        self._device = device
        self._dtype = dtype
        self._create = create
        self._bound: list[Array] = []  # what was bound to the call
        self._current: list[Array] = []  # what the latest call has: the same, or in their place
        self._digests: list[int] = []
        self._before: dict[int, NDArray[Any]] = {}  # what was placed in those that calls overwrite
        self._originals: dict[int, Array] = {}  # the same on the device, where it is restored

    def place(self, operand: NDArray[Any], *, overwritten: bool = False) -> Array:
        """One more input on the device, checked to have arrived.

        Args:
            overwritten: whether calls may change it.

        Raises:
            WrongResult: it changed on the way.
        """
        array = self._placed(operand)
        values = self._framework.to_numpy(array)
        if overwritten:
            self._before[len(self._bound)] = np.array(values)
            array = self._framework.variable(array)
        self._bound.append(array)
        self._current.append(array)
        self._digests.append(digest(values))
        return array

    def check(self) -> list[NDArray[Any]]:
        """The inputs on the host as they were placed, also those that calls overwrite.

        Raises:
            WrongResult: another one is not: the work has changed it, or it was not written.
        """
        on_host = [
            self._before[position] if position in self._before else self._framework.to_numpy(array)
            for position, array in enumerate(self._current)
        ]
        for position, (array, placed) in enumerate(zip(on_host, self._digests, strict=True)):
            if digest(array) != placed:
                raise WrongResult(
                    f"the work changed input {position}: its next call computes something else; "
                    f"return a new array (or {self._framework.name}'s write returned True, and did "
                    "not copy the values)"
                )
        return on_host

    @property
    def digests(self) -> tuple[int, ...]:
        """Digests of the values of the inputs, as the framework has them."""
        return tuple(self._digests)

    @property
    def current(self) -> Sequence[Array]:
        """The arrays of the latest call: those that were bound, or others in their place."""
        return self._current

    def overwritten(self) -> list[Array]:
        """Operands that calls overwrite, after the latest call."""
        return [self._current[position] for position in self._before]

    def restore(self) -> None:
        """Give the inputs that calls overwrite the values that were placed."""
        if self._originals.keys() != self._before.keys():
            self._originals = {i: self._placed(values) for i, values in self._before.items()}
        for position, original in self._originals.items():
            self._framework.write(self._current[position], original)

    def addresses(self) -> set[int]:
        """Where the inputs are, as far as that is known."""
        known = (self._framework.address(array) for array in self._current)
        return {address for address in known if address is not None}

    def change(self, run: BoundCall, operands: Sequence[NDArray[Any]]) -> Change:
        """Place other values for the inputs; those with the values of now stay as they are.

        Args:
            operands: the new values, in the order of the inputs.

        Returns:
            Gives them to the call, and returns the one to make: ``run`` itself where all arrays
            could be written. Raises DeclarationError where it can be given no others.

        Raises:
            WrongResult: the values did not arrive.
        """
        fresh = {
            position: self._placed(operand)
            for position, (operand, placed) in enumerate(zip(operands, self._digests, strict=True))
            if position in self._before or digest(operand) != placed
        }
        values = {position: self._framework.to_numpy(array) for position, array in fresh.items()}
        before = {position: np.array(values[position]) for position in self._before}
        digests = [*self._digests]
        for position, arrived in values.items():
            digests[position] = digest(arrived)

        def switch() -> BoundCall:
            for position, bound in enumerate(self._bound):
                if digests[position] != self._digests[position] or position in before:
                    new = fresh[position] if position in fresh else self._placed(operands[position])
                    written = self._framework.write(bound, new)
                    self._current[position] = bound if written else new
            self._digests, self._before, self._originals = digests, before, {}
            replaced = {
                id(bound): new
                for bound, new in zip(self._bound, self._current, strict=True)
                if bound is not new
            }
            return self._rebound(run, replaced) if replaced else run

        return switch

    def another(
        self, run: BoundCall, operands: Sequence[NDArray[Any]]
    ) -> tuple["Inputs", BoundCall]:
        """Others, and the call bound to them; DeclarationError where it can be given none."""
        other = Inputs(self._framework, self._device, self._dtype, self._create)
        for bound, operand in zip(self._bound, operands, strict=True):
            self._framework.make_like(other.place(operand), bound)
        replaced = zip(map(id, self._bound), other._bound, strict=True)
        return other, self._rebound(run, dict(replaced))

    def _placed(self, operand: NDArray[Any]) -> Array:
        dtype = self._dtype if is_float(operand) else operand.dtype.name
        if self._create is None:
            array = self._framework.place(operand, self._device, dtype)
            check_device(self._framework, array, self._device, "an input")
        else:
            array = self._create(operand, dtype)
        verify.placed(self._framework.to_numpy(array), operand, dtype)
        return array

    def _rebound(self, run: BoundCall, replaced: Mapping[int, Array]) -> BoundCall:
        """The same function with other arrays in place of those that it was bound to."""
        left = dict(replaced)

        def substituted(argument: Any) -> Any:
            if isinstance(argument, list | tuple):
                return type(argument)(map(substituted, argument))
            if isinstance(argument, dict):
                return {name: substituted(value) for name, value in argument.items()}
            left.pop(id(argument), None)
            return replaced.get(id(argument), argument)

        if isinstance(run, partial):
            run = partial(run.func, *map(substituted, run.args), **run.keywords)
        if left:
            raise DeclarationError(
                f"{self._framework.name}'s arrays cannot be written, and its bound call cannot be "
                "given others: whether its result is kept from an earlier call cannot be verified; "
                "return functools.partial(function, *inputs) from forward and backward, with all "
                "inputs and the cotangent among its arguments, or implement Framework.write"
            )
        return run


#: Everything that an operation on two vectors of a million numbers needs takes 80 MiB.
_LIMIT_BYTES = 256 * 2**20

#: Computes arrays that are not known yet.
Compute = Callable[[], Iterable[NDArray[Any]]]


class OperandCache:
    """The arrays that were requested last, within a limit of memory for all of them."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._known: OrderedDict[Hashable, Sequence[NDArray[Any]]] = OrderedDict()
        self.size_bytes = 0
        self._keeps = True

    @contextmanager
    def keeping_nothing(self) -> Iterator[None]:
        """Compute within the block what is not known, for whoever needs it once."""
        self._keeps = False
        try:
            yield
        finally:
            self._keeps = True

    def arrays(self, key: Hashable, compute: Compute) -> Sequence[NDArray[Any]]:
        """The arrays of a key, computed where not known; cached ones cannot be written to."""
        if key not in self._known:
            computed = tuple(compute())
            size_bytes = sum(array.nbytes for array in computed)
            if size_bytes > self._limit_bytes or not self._keeps:
                return computed
            self._known[key] = tuple(map(_owned, computed))
            self.size_bytes += size_bytes
            while self.size_bytes > self._limit_bytes:
                _, oldest = self._known.popitem(last=False)
                self.size_bytes -= sum(array.nbytes for array in oldest)
        self._known.move_to_end(key)
        return self._known[key]


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """An array that cannot be written to; a copy of a part of another, which would stay as well."""
    kept = array.view() if array.base is None else np.array(array)
    kept.setflags(write=False)
    return kept


#: What the cases of this process have in common.
OPERAND_CACHE = OperandCache(_LIMIT_BYTES)


def drawn_operands(
    operation: Operation, size: Size, changed: int | None = None
) -> Sequence[NDArray[Any]]:
    """The operands of an operation, as it draws them, or ``changed`` ones by another seed."""
    first = OPERAND_CACHE.arrays((operation, size, "first"), lambda: operation.operands(size))
    if changed is None:
        return first
    return OPERAND_CACHE.arrays(
        (operation, size, changed), lambda: operation.changed_operands(size, changed, first)
    )


#: What ``to_numpy`` may return: booleans, integers, floating-point and complex numbers.
_NUMBERS = "biufc"

#: How many arrays of float64 a comparison has at once, for each that it is given.
_COPIES = 4


@contextmanager
def guarded_read(framework: Framework, *arrays: Array) -> Iterator[None]:
    """Say of an error of the framework that a result could not be read.

    Raises:
        UnreadableResult: an error was raised meanwhile.
    """
    try:
        yield
    except (MemoryError, VerificationError):
        raise
    except Exception as error:
        kinds = ", ".join(dict.fromkeys(type(array).__name__ for array in arrays))
        message = str(error).strip().partition("\n")[0]
        raise UnreadableResult(
            f"the result ({kinds}) cannot be read back: {framework.name} raised "
            f"{type(error).__name__}: {message}"
        ) from error


def read_result(framework: Framework, array: Array) -> NDArray[Any]:
    """The values of an array of a result.

    Raises:
        UnreadableResult: it is not an array of numbers, or reading it fails.
    """
    with guarded_read(framework, array):
        values = np.asarray(framework.to_numpy(array))
    if values.dtype.kind not in _NUMBERS:
        raise UnreadableResult(
            f"the result ({type(array).__name__}) cannot be read back: {framework.name}'s "
            f"to_numpy returned {values.dtype} instead of numbers"
        )
    return values


def check_room(work: str, elements: float) -> None:
    """Check that there is room for the arrays of a case before any is made.

    Args:
        elements: of its operands and results, which are drawn and computed in float64 first.

    Raises:
        TooLargeToVerify: they take more memory than is free.
    """
    arrays = f"{work} has arrays of {elements:,.0f} elements: drawn in float64 they take"
    _check_free(int(8 * elements), arrays)


def check_fits(inputs: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]) -> None:
    """Check that there is room to compare a result with its reference.

    Raises:
        TooLargeToVerify: it takes more memory than is free.
    """
    elements = sum(array.size for array in inputs), sum(array.size for array in results)
    work = f"to verify {elements[1]:,} elements of results against {elements[0]:,} of inputs takes"
    _check_free(_COPIES * 8 * sum(elements), work)


def _check_free(needed_bytes: int, work: str) -> None:
    """The kernel grants memory that it does not have, and ends the process that uses it."""
    free_bytes = psutil.virtual_memory().available
    if needed_bytes > free_bytes:
        raise TooLargeToVerify(
            f"{work} {gibibytes(needed_bytes)} of memory, and {gibibytes(free_bytes)} are free; "
            "measure a smaller size"
        )
