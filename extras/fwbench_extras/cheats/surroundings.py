"""Cheats about inputs and the harness: its clock, its stack, its threads."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import numpy as np

from fwbench import workloads
from fwbench.errors import FrameworkBroken, NotACopy, VerificationError
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.cheat import Cheat, CheatingFramework, map_arrays
from fwbench_extras.cheats.honest import Compute

# Inputs


def _in_place(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    first = inputs[0]

    def run() -> Any:
        first[...] = compute(*inputs)
        return first

    return run


_forward = partial(Cheat, directions=("forward",))

INPUTS = (
    _forward(
        name="mutated_input",
        fakes="Writes its result over its input: the next call works on something else.",
        mistake="an operation in place, which saves the allocation",
        why="the inputs after the call are not those before it",
        bind=_in_place,
        workload=workloads.tanh,
    ),
    _forward(
        name="in_place_relu",
        fakes="Writes its result over its input, which changes no later result: relu of relu is "
        "relu.",
        mistake="`relu(x, inplace=True)`, timed against one that allocates",
        why="the inputs after the call are not those before it",
        bind=_in_place,
        workload=workloads.relu,
    ),
    _forward(
        name="view_for_copy",
        fakes="Creates arrays that share memory with their source.",
        mistake="`from_numpy` and `asarray`, which wrap, timed against calls that copy",
        caught_by=NotACopy,
        why="the created array changes with its source",
        create=np.asarray,
        workload=workloads.from_numpy,
        size=1_000,
    ),
    _forward(
        name="uninitialised_inputs",
        fakes="Places arrays of the right shape full of zeros instead of the data.",
        mistake="`empty` for inputs: zeros and denormal numbers take other times than data",
        why="placed arrays are read back and compared before anything runs",
        create=lambda source, dtype: np.zeros(np.shape(source), dtype),
    ),
)

# The device


class _OnGpu(np.ndarray[Any, Any]):
    """An array in the memory of a GPU."""


def _elsewhere(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    work = partial(compute, *inputs)
    return lambda: map_arrays(lambda array: np.asarray(array).view(_OnGpu), work())


class _OnAnotherDevice(CheatingFramework):
    """Tells the truth of where an array is."""

    def device_of(self, array: Any) -> str:
        """The GPU of arrays that were computed there."""
        return "gpu:0" if isinstance(array, _OnGpu) else "cpu"


DEVICE = (
    Cheat(
        name="another_device",
        fakes="Computes on another device than the one that is measured.",
        mistake="TensorFlow's soft placement: what has no kernel on a GPU is computed on the CPU, "
        "and published as the GPU's",
        why="every input and result is asked for its device",
        bind=_elsewhere,
        base=_OnAnotherDevice,
    ),
)

# The harness

_SLOWER = 10.0

#: Frames of the stack; the loop that reads the clock is among the first.
_FRAMES = 4


class _SlowClock:
    """A clock on which ten seconds are one."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __call__(self) -> float:
        return self._read() / _SLOWER


def _slow_clock(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    read = time.perf_counter
    if not isinstance(read, _SlowClock):
        time.perf_counter = _SlowClock(read)
    return partial(compute, *inputs)


def _defeat_device(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    result = compute(*inputs)
    return lambda: result if _is_timed(sys._getframe(1)) else compute(*inputs)  # noqa: SLF001


def _is_timed(frame: FrameType | None) -> bool:
    """True if a frame, or one of those next above it, belongs to code that times calls."""
    for _ in range(_FRAMES):
        if frame is None:
            return False
        module = frame.f_globals.get("__name__", "")
        if "perf_counter" in frame.f_code.co_names or module.startswith("pytest_benchmark"):
            return True
        frame = frame.f_back
    return False


class _MoreThreads(CheatingFramework):
    """Computes with one thread more than it is set to."""

    def set_threads(self, threads: int) -> None:
        """Compute with one thread more."""
        super().set_threads(threads + 1)
        self._threads = threads + 1

    def threads(self) -> int:
        """The threads that it really computes with."""
        return self._threads


class _HiddenThreads(_MoreThreads):
    """Computes with one thread more, and reports the number that it was set to."""

    def threads(self) -> int:
        """The threads that it was set to."""
        return self._threads - 1


def _multiply(connection: Connection) -> None:
    with suppress(EOFError):  # of a framework that has gone
        while True:
            connection.send(np.matmul(*connection.recv()))


def _half_elsewhere(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    context = multiprocessing.get_context("spawn")  # a fork keeps files open that others wait for
    child, other_end = context.Pipe()
    context.Process(target=_multiply, args=[other_end], daemon=True).start()

    def run() -> Any:
        x, y = inputs
        half = len(x) // 2
        child.send((x[half:], y))
        return np.concatenate([compute(x[:half], y), child.recv()])

    return run


_OUTSIDE = (
    "the process that has started the worker reads the processor time of all its threads and "
    "children, before and after rounds of more than 20 ms (of its own turns, in a row): it must "
    "fit into the threads that were asked for; where no processor is free for it, there is nothing "
    "to gain"
)

HARNESS = (
    Cheat(
        name="slow_clock",
        fakes="Has ``time.perf_counter`` run ten times slower while the work is bound.",
        mistake="a clock that stands still: suspended virtual machines, frequency scaling, patches",
        caught_by=VerificationError,
        why="functions that a verdict hangs on must be those that were imported before it; a "
        "framework that patches fwbench instead is in the same process and can do anything",
        bind=_slow_clock,
    ),
    Cheat(
        name="defeat_device",
        fakes="Inspects the stack above it, and works only where no clock is read.",
        mistake="software that knows when it is tested, as a maker of cars had it",
        caught_by=None,
        why="calls are timed by other code than that which verifies, and a framework in the same "
        "process can tell one from the other; at larger sizes its rate is above the machine's peak",
        bind=_defeat_device,
        size=32,
    ),
    Cheat(
        name="more_threads",
        fakes="Computes with one thread more than it is set to, and reports it.",
        mistake="a thread count of the library's own, which no variable reaches",
        caught_by=FrameworkBroken,
        why="the framework is refused when it is loaded: its times would not compare",
        base=_MoreThreads,
        directions=(),
    ),
    Cheat(
        name="hidden_threads",
        fakes="Computes with one thread more than it is set to, and reports that it does not.",
        mistake="a thread pool that the framework does not know of, such as that of its BLAS",
        caught_by=VerificationError,
        why=_OUTSIDE,
        base=_HiddenThreads,
        size=1024,
        directions=("forward",),
    ),
    Cheat(
        name="half_elsewhere",
        fakes="Computes half of a product in a child process.",
        mistake="a service that does the work, which no thread count of a library limits",
        caught_by=VerificationError,
        why=f"{_OUTSIDE}, or little: 3 of 24 sessions on a shared machine gave it a number",
        bind=_half_elsewhere,
        size=1024,
        directions=("forward",),
    ),
)
