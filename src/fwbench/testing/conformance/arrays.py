"""The adapter under test; checks of its declarations, and of arrays, their dtypes and devices."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.case import bind
from fwbench.errors import ConformanceError
from fwbench.frameworks.contract import Array, Framework
from fwbench.packaged import read_table
from fwbench.terms.manifest import Absent, Manifest
from fwbench.terms.names import FLOAT8, numpy_dtype
from fwbench.workloads.grid import Cell

_DEVICE = re.compile(r"cpu|gpu:\d+")

_UNDECLARED_DEVICE = "gpu:99"

_FAILURES = read_table(__package__, "failures.toml")


def failure(name: str, **values: Any) -> ConformanceError:
    """The error of a check that fails, in the words of ``failures.toml``."""
    return ConformanceError(" ".join(_FAILURES[name].split()).format(**values))


@dataclass(frozen=True)
class Adapter:
    """A framework that is loaded into this process.

    Attributes:
        timer: the clock that runs while it works; in seconds.
        processor_timer: the processor time that this process has used; in seconds.
    """

    framework: Framework
    manifest: Manifest
    timer: Callable[[], float] = time.perf_counter
    processor_timer: Callable[[], float] = time.process_time

    def scope(self, device: str, dtype: str = "float32") -> AbstractContextManager[Any]:
        """The adapter's scope, in which all work of a check happens."""
        return self.framework.scope(device, dtype)

    def create(self, source: Any, device: str, dtype: str) -> Array:
        """Create an array of the framework."""
        return self.framework.creator(device, dtype)(source)

    def read(self, array: Array) -> NDArray[Any]:
        """Read the array's values on the host."""
        return self.framework.to_numpy(array)

    def finish(self, device: str) -> None:
        """Wait until all work on the device is done, the adapter's way."""
        wait = self.framework.waiter(device)
        if wait is not None:
            wait()


def manifest_survives_json(adapter: Adapter) -> None:
    """Check that the manifest reaches the process that runs pytest as it was sent."""
    manifest = adapter.manifest
    try:
        received = Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
    except TypeError as error:
        raise failure("manifest_unsendable", error=error) from error
    for name, sent in vars(manifest).items():
        arrived = getattr(received, name)
        if arrived != sent:
            raise failure("manifest_changed", key=name, sent=sent, received=arrived)


def devices_are_named(adapter: Adapter) -> None:
    """Check that the CPU comes first and every device is named ``cpu`` or ``gpu:N``."""
    names = [device.name for device in adapter.manifest.devices]
    wrong = [name for name in names if not _DEVICE.fullmatch(name)]
    if wrong or names[:1] != ["cpu"] or len({*names}) < len(names):
        raise failure("devices", names=", ".join(names) or "nothing")


def undeclared_device_is_refused(adapter: Adapter) -> None:
    """Check that work for a GPU that is not there raises instead of running elsewhere."""

    def create() -> None:
        with adapter.scope(_UNDECLARED_DEVICE):
            adapter.read(
                adapter.create(np.ones(3, dtype=np.float32), _UNDECLARED_DEVICE, "float32")
            )

    check_refused(create, failure("undeclared_device", device=_UNDECLARED_DEVICE))


def check_refused(work: Callable[[], Any], otherwise: ConformanceError) -> None:
    """Check that work that the adapter does not declare raises any exception."""
    try:
        work()
    except Exception:  # noqa: BLE001 (frameworks differ in the exceptions that they raise)
        return
    raise otherwise


def requested_threads(config: pytest.Config) -> int:
    """Number of threads that frameworks are given: 1 unless ``--fw-threads`` says otherwise."""
    return int(config.getoption("fw_threads") or 1)


def threads_are_set(answers: Mapping[int, Manifest | Absent]) -> None:
    """Check that the framework computes with the threads that a session requests."""
    for threads, answer in answers.items():
        if isinstance(answer, Absent):
            raise failure("threads_absent", threads=threads, answer=answer)
        if answer.threads not in (threads, None):
            raise failure("threads", threads=threads, reported=answer.threads)


_SHAPES = ((3,), (2, 3), (2, 3, 4))

#: The bits of a float32 that dtypes without NumPy's do not have, ...
_DROPPED_BITS = {"bfloat16": np.uint32(0xFFFF), FLOAT8: np.uint32(0xFFFFF)}
#: ... and the relative change that rounding to them may make.
_ROUNDED = {"bfloat16": verify.TOLERANCES["bfloat16"], FLOAT8: 2.0**-4}

_MEMORY_BYTES = 1 << 24


def creation_copies(adapter: Adapter, device: str, dtype: str) -> None:
    """Check that a created array stays as it is when its source changes."""
    numbers = np.linspace(-2.0, 3.0, 1024, dtype=numpy_dtype(dtype))
    sources: tuple[Any, ...] = (numbers, numbers.tolist())
    with adapter.scope(device, dtype):
        for source in sources:
            array = adapter.create(source, device, dtype)
            adapter.finish(device)
            before = np.copy(adapter.read(array))
            source[:] = [0.0] * len(source)
            verify.copied(before, adapter.read(array))


def values_survive(adapter: Adapter, device: str, dtype: str) -> None:
    """Check that an array comes back from the device as it was sent, in the declared dtype."""
    with adapter.scope(device, dtype):
        for expected in _thirds(dtype):
            actual = adapter.read(adapter.create(expected, device, dtype))
            if actual.shape != expected.shape:
                raise failure("shape", expected=expected.shape, actual=actual.shape)
            check_dtype("an array created", actual, dtype)
            if not _same(actual, expected, dtype):
                few, read = expected.ravel()[:3], actual.ravel()[:3]
                raise failure("values", device=device, dtype=dtype, expected=few, actual=read)


def integers_survive(adapter: Adapter, device: str, dtype: str) -> None:
    """Check that integers come back as they were sent; operations take them as indices.

    Args:
        dtype: ``int32`` or ``int64``; a framework may use another integer type for it.
    """
    expected = np.array([0, 1, -5, 2**20 + 1], dtype=dtype)
    with adapter.scope(device):
        actual = adapter.read(adapter.create(expected, device, dtype))
    if not np.issubdtype(actual.dtype, np.integer) or not np.array_equal(actual, expected):
        read = {"actual": actual, "actual_dtype": actual.dtype}
        raise failure("integers", device=device, dtype=dtype, expected=expected, **read)


def addresses_tell_arrays_apart(adapter: Adapter, device: str) -> None:
    """Check that ``address`` is the same for the same array and differs between arrays."""
    source = np.ones(64, dtype=np.float32)
    with adapter.scope(device):
        first, second = (adapter.create(source, device, "float32") for _ in range(2))
        adapter.finish(device)
        address = adapter.framework.address
        actual = [address(array) for array in (first, first, second)]
    if actual == [None] * 3:  # which the contract allows
        return
    if None in actual or actual[0] != actual[1] or actual[0] == actual[2]:
        raise failure("addresses", first=actual[:2], second=actual[2])


def results_have_the_dtype(adapter: Adapter, typed_cell: Cell) -> None:
    """Check that an operation on arrays of a dtype computes in that dtype."""
    with adapter.scope(typed_cell.device, typed_cell.dtype):
        actual = adapter.read(bind(typed_cell, adapter.framework).run())
    check_dtype(
        f"the result of {typed_cell.workload.name} ({typed_cell.execution})",
        actual,
        typed_cell.dtype,
    )


def work_is_placed(adapter: Adapter, device: str) -> None:
    """Check that an array created in the scope of a device takes memory there.

    Args:
        device: one that the framework declares; the CPU's memory is not watched.
    """
    source = np.ones(_MEMORY_BYTES // 4, dtype=np.float32)
    with adapter.scope(device):
        before = adapter.framework.watch_memory(device)()
        peak_bytes = adapter.framework.watch_memory(device)
        array = adapter.create(source, device, "float32")
        adapter.finish(device)
        after = peak_bytes()
        adapter.read(array)  # keeps it until the peak is known
    grown = None if after is None else after - (before or 0)
    if grown is not None and grown < _MEMORY_BYTES:
        raise failure("placement", size_bytes=_MEMORY_BYTES, device=device, grown_bytes=grown)


def check_dtype(what: str, actual: NDArray[Any], dtype: str) -> None:
    """Check the dtype of what ``to_numpy`` returned; one that NumPy lacks is float32."""
    expected = numpy_dtype(dtype)
    if actual.dtype.name != expected:
        raise failure("dtype", what=what, dtype=dtype, actual=actual.dtype, expected=expected)
    dropped = _DROPPED_BITS.get(dtype)
    if dropped is not None and np.any(np.ascontiguousarray(actual).view(np.uint32) & dropped):
        raise failure("wider_dtype", what=what, dtype=dtype)


def _thirds(dtype: str) -> Iterator[NDArray[Any]]:
    """Values that use all digits of the dtype."""
    for shape in _SHAPES:
        numbers = (np.arange(np.prod(shape)) - 1) / 3
        yield numbers.reshape(shape).astype(numpy_dtype(dtype))


def _same(actual: NDArray[Any], expected: NDArray[Any], dtype: str) -> bool:
    return bool(np.allclose(actual, expected, rtol=_ROUNDED.get(dtype, 0.0), atol=0.0))
