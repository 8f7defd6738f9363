"""GPUs: copies between them and the host, and their own clock, without launching and waiting."""

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from numpy.typing import NDArray

#: The environment variable that is set in processes which measure the CPU alone, on a machine with
#: a GPU: what opens one takes half a gigabyte of it for as long as the process lives.
HIDDEN = "FWBENCH_HIDE_GPUS"


def are_hidden() -> bool:
    """True in a process that must not open a GPU: a framework may do so when it is first asked."""
    return HIDDEN in os.environ


#: The place of an array in memory of the host which the GPU can copy by itself.
PINNED = "cpu, pinned"


class Copies(ABC):
    """A framework's own calls that copy arrays between the host and one GPU."""

    #: The call that copies an array of the host's to the GPU; nothing but the framework's own,
    #: because it is timed.
    to_device: Callable[[Any], Any]
    #: The call that copies one of the GPU's to the host.
    to_host: Callable[[Any], Any]
    #: Called before each round with the array that is copied to the host, where a framework keeps
    #: what it has once copied of an array; None where it does not.
    renew: Callable[[Any], Any] | None = None

    @abstractmethod
    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """An array of the framework's in the memory of the host that copies begin in."""

    @abstractmethod
    def place(self, array: Any) -> str:
        """The place of an array: ``cpu``, :data:`PINNED`, or ``gpu:N``."""


EVENTS, CUPTI = "events", "cupti"

#: The device's own clocks.
DEVICE_CLOCKS = (EVENTS, CUPTI)


class DeviceClock(ABC):
    """Times calls by the clock of a device, whose queue is kept full meanwhile.

    The device must not wait for the host: what it waits would be in its times. So it is kept busy
    until all calls are enqueued, as nvbench does with a kernel that blocks (``measure_cold.cu``);
    or its pauses are left out, where kernels are timed and not calls.
    """

    #: The record's name for it: ``events`` around calls, or ``cupti``, the sum of kernels.
    name: ClassVar[str] = EVENTS

    #: Why the latest times are missing; empty where they are not.
    failure: str = ""

    @abstractmethod
    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """The seconds that each of several calls took on the device; none where it does not tell.

        Args:
            calls: how many; few enough for the device's queue.
            before: enqueued before each call, and not timed.
        """


class NoClock(DeviceClock):
    """Stands for the clock of a device that cannot be read, and says why."""

    def __init__(self, failure: str) -> None:
        self.failure = failure

    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """None."""
        return []


#: Listening costs milliseconds a call, and times of kernels vary little.
_CALLS_AT_MOST = 10

_BUFFER_BYTES = 8 * 1024 * 1024


# CUPTI's activity records say how long each kernel, copy and fill took by the GPU's own clock
# (https://docs.nvidia.com/cupti, "CUPTI Activity API"). JAX has a way to them of its own; for other
# frameworks ``cupti-python`` reads them, where it is installed. Only one tool of a process may
# listen, and listening slows launches: it ends after each call. JAX's way records kernels alone
# (``cuptiActivityEnable`` in jaxlib/mosaic/gpu/mosaic_gpu_ext.cc), so others count only kernels,
# too, of calls that have any: the clock would mean another time in each framework.


class Listener(ABC):
    """A way to the records of the process; what is wrong with it, either method raises."""

    @abstractmethod
    def begin(self) -> None:
        """Have everything recorded that runs on the GPU from here on."""

    @abstractmethod
    def end(self) -> Sequence[float]:
        """The seconds of each kernel that has run, or of each copy and fill where none has.

        Nothing is recorded from here on.
        """


class CuptiPython(Listener):
    """By ``cupti-python``, of the version of CUDA that the framework has.

    Raises:
        ImportError: it is not installed, or finds no CUPTI.
    """

    def __init__(self) -> None:
        self._cupti: Any = importlib.import_module("cupti.cupti")
        kinds = self._cupti.ActivityKind
        self._kinds = (kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET)
        self._records: list[Any] = []

    def begin(self) -> None:
        """Callbacks are forgotten with every end."""
        self._records.clear()
        self._cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._records.extend)
        for kind in self._kinds:
            self._cupti.activity_enable(kind)

    def end(self) -> Sequence[float]:
        """Records have their begin and end in nanoseconds."""
        try:
            for kind in self._kinds:
                self._cupti.activity_disable(kind)
            self._cupti.activity_flush_all(1)  # also buffers that are not full
        finally:
            self._cupti.finalize()
        others = self._kinds[1:]
        kernels = [record for record in self._records if record.kind not in others]
        return [(record.end - record.start) / 1e9 for record in kernels or self._records]


class Cupti(DeviceClock):
    """The GPU's busy time in each call: the sum of its kernels, without the pauses between."""

    name = CUPTI

    def __init__(self, wait: Callable[[], Any], listener: Listener) -> None:
        self._wait = wait
        self._listener = listener

    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """One call at a time: what came before it, and what comes after it, is not recorded."""
        times_s = []
        for _ in range(min(calls, _CALLS_AT_MOST)):
            before()
            self._wait()
            self.failure = _NO_RECORD
            with self._keeping_failure():
                self._listener.begin()
            busy_s: Sequence[float] = []
            try:
                run()
                self._wait()
            finally:
                with self._keeping_failure():
                    busy_s = self._listener.end()
            if not busy_s:
                return []
            times_s.append(sum(busy_s))
        self.failure = ""
        return times_s

    @contextmanager
    def _keeping_failure(self) -> Iterator[None]:
        """Problems of CUPTI fail no case: another tool may listen, or permission lack."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (whatever CUPTI raises)
            if self.failure == _NO_RECORD:  # the first one is the cause
                self.failure = f"CUPTI cannot be read: {_brief(error)}"


_NO_RECORD = "CUPTI has no record of a call"


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def cupti_clock(
    wait: Callable[[], Any] | None, *others: Callable[[], Listener]
) -> DeviceClock | None:
    """``cupti-python``, or another way to CUPTI, or the reason that there is none.

    Args:
        wait: until the GPU has nothing left to do; None where nothing runs on one.
        others: ways of a framework's own, tried where that one raises; they may raise, too.
    """
    return None if wait is None else clock_by(wait, CuptiPython, *others)


def clock_by(wait: Callable[[], Any], *listeners: Callable[[], Listener]) -> DeviceClock:
    """The first of several ways to CUPTI, or the reason that there is none.

    Args:
        wait: until the GPU has nothing left to do.
        listeners: tried in turn; they raise where they are not to be had.
    """
    failures = []
    for listener in listeners:
        try:
            return Cupti(wait, listener())
        except Exception as error:  # noqa: BLE001 (of libraries that are absent, or other versions)
            failures.append(_brief(error))
    return NoClock(f"there is no way to CUPTI: {'; '.join(failures)}")
