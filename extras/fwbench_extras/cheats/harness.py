"""Liars about the harness: its clock, its stack, its threads."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, ClassVar

from fwbench.errors import FrameworkBroken, FwbenchError
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.honest import Compute
from fwbench_extras.cheats.liar import Liar

_SLOWER = 10.0

#: Frames of the stack; the loop of whoever times is among the first.
_LOOKED_AT = 4


class SlowClock(Liar):
    """Has ``time.perf_counter`` run ten times slower while the work is bound."""

    mistake = "a clock that stands still: suspended virtual machines, frequency scaling, patches"
    caught_by: ClassVar[type[FwbenchError] | None] = None
    why = (
        "not fooled, and so not caught: fwbench and pytest-benchmark keep the clock that they "
        "imported, and workers import them before a framework's module; a framework that patches "
        "them instead is in the same process and can do anything"
    )

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The work; and the clock is another one."""
        read = time.perf_counter
        if not isinstance(read, _Slow):
            time.perf_counter = _Slow(read)
        return super().bound(compute, inputs)


class _Slow:
    """A clock on which ten seconds are one."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __call__(self) -> float:
        return self._read() / _SLOWER


class DefeatDevice(Liar):
    """Looks at the stack above it, and works where nobody reads a clock."""

    mistake = "software that knows when it is tested, as a maker of cars had it"
    caught_by: ClassVar[type[FwbenchError] | None] = None
    why = (
        "calls are timed by other code than that which verifies, and a framework in the same "
        "process can tell one from the other; at larger sizes its rate is above what the machine "
        "can do"
    )
    size = 32

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """Honest but to those who time."""
        kept = compute(*inputs)
        return lambda: kept if _is_timed(sys._getframe(1)) else compute(*inputs)  # noqa: SLF001


def _is_timed(frame: FrameType | None) -> bool:
    """Whether a frame, or one of those next above it, belongs to what times calls."""
    for _ in range(_LOOKED_AT):
        if frame is None:
            return False
        module = frame.f_globals.get("__name__", "")
        if "perf_counter" in frame.f_code.co_names or module.startswith("pytest_benchmark"):
            return True
        frame = frame.f_back
    return False


class MoreThreads(Liar):
    """Computes with one thread more than it was told, and says so."""

    mistake = "a thread count of the library's own, which no variable reaches"
    caught_by: ClassVar[type[FwbenchError] | None] = FrameworkBroken
    why = "the framework is refused when it is loaded: its times would not compare"
    directions: ClassVar = ()

    def set_threads(self, threads: int) -> None:
        """Compute with one thread more than it is told."""
        super().set_threads(threads + 1)
        self._threads = threads + 1

    def threads(self) -> int:
        """The threads that it really computes with."""
        return self._threads


class HiddenThreads(MoreThreads):
    """Computes with one thread more than it was told, and says that it did not."""

    mistake = "a thread pool that the framework does not know of, such as that of its BLAS"
    caught_by: ClassVar[type[FwbenchError] | None] = None
    why = (
        "a framework says itself how many threads it has; its record does show the processor time "
        "of the rounds (`cpu_s`) above threads x `wall_s`"
    )

    def threads(self) -> int:
        """The threads that it was told to compute with."""
        return self._threads - 1


LIARS = (SlowClock, DefeatDevice, MoreThreads, HiddenThreads)
