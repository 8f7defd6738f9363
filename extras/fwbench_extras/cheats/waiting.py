"""Liars about when they are done: the work goes on, or has not begun, when the call returns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, partial
from itertools import count
from queue import Queue
from threading import BoundedSemaphore
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import UnfinishedWork
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.honest import Compute
from fwbench_extras.cheats.liar import Liar, each, leaves

#: Pieces of work that the queue of an asynchronous liar has room for.
_PLACES = 16

_EARLY = "reading a result back takes longer than reading alone explains"


class Pending:
    """An array of a result that need not be there yet: whoever reads it waits for it.

    Args:
        result: returns the whole result of the call, once it is there.
        place: of the array among those of the result.
    """

    def __init__(self, result: Callable[[], Any], place: int) -> None:
        self._result = result
        self._place = place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values, for NumPy."""
        return np.asarray(leaves(self._result())[self._place], dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        """A part of the values."""
        return np.asarray(self)[index]


class _Late(Liar):
    """A liar whose results are :class:`Pending`."""

    caught_by = UnfinishedWork
    why = _EARLY
    size = 512

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that returns before the work is done."""
        work = partial(compute, *inputs)
        template = work()

        def run() -> Any:
            result = self.later(work)
            places = count()
            return each(lambda _: Pending(result, next(places)), template)

        return run

    @abstractmethod
    def later(self, work: BoundCall) -> Callable[[], Any]:
        """Have the work done some time.

        Args:
            work: all of it.

        Returns:
            What returns its result, once it is there.
        """

    def address(self, array: Any) -> int | None:
        """Unknown of what is not there yet."""
        return None if isinstance(array, Pending) else super().address(array)


class _Asynchronous(_Late):
    """Work goes into the queue of one thread, as a device's does; a call waits while it is full."""

    @cached_property
    def _places(self) -> BoundedSemaphore:
        return BoundedSemaphore(_PLACES)

    @cached_property
    def _queue(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1)

    def later(self, work: BoundCall) -> Callable[[], Any]:
        """The result of the queue."""
        self._places.acquire()
        future = self._queue.submit(work)
        future.add_done_callback(lambda _: self._places.release())
        return future.result


class WithoutWaiter(_Asynchronous):
    """Computes in another thread, and declares that calls return when their work is done."""

    mistake = "a timing loop around asynchronous calls without a synchronisation"


class WaiterThatDoesNotWait(_Asynchronous):
    """Computes in another thread, and has a waiter that returns at once."""

    mistake = "a synchronisation that is a no-op on this device, or is not awaited"

    def waiter(self, device: str) -> Callable[[], Any]:
        """A waiter that returns at once."""
        return lambda: None


class WrongQueue(_Asynchronous):
    """Computes in one queue, and waits for another, which is empty."""

    mistake = "synchronising the default stream while the work is on a stream of its own"

    def waiter(self, device: str) -> Callable[[], Any]:
        """Waits for the queue that has nothing to do."""
        return Queue[Any]().join


class LazyResult(_Late):
    """Returns a description of the work, which is done when the result is first read."""

    mistake = "a lazy array or a data frame that nobody materialised"

    def later(self, work: BoundCall) -> Callable[[], Any]:
        """The work, done when it is first read."""
        return cache(work)


class LazyEveryTime(_Late):
    """Returns a description of the work, which is done whenever the result is read."""

    mistake = "an expression or an iterator taken for its value"

    def later(self, work: BoundCall) -> Callable[[], Any]:
        """The work, done whenever it is read."""
        return work


class WorkInTheWaiter(Liar):
    """Does the work of the next call while the clock waits before a round begins.

    The first wait after a call ends the round and does nothing; the second one is before the next.
    """

    mistake = "work that moved from what is timed to its preparation, such as a prefetch"
    caught_by = UnfinishedWork
    why = "waiting for a device without work takes longer than the call"
    size = 512

    def __init__(self) -> None:
        super().__init__()
        self._ahead: list[Any] = []
        self._work: BoundCall | None = None
        self._waits = 0

    def waiter(self, device: str) -> Callable[[], Any]:
        """Computes ahead, the second time that it is called after a call."""

        def wait() -> None:
            self._waits += 1
            if self._waits > 1 and self._work is not None and not self._ahead:
                self._ahead.append(self._work())

        return wait

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """What was computed ahead; without it, the work."""
        work = self._work = partial(compute, *inputs)

        def run() -> Any:
            self._waits = 0
            return self._ahead.pop() if self._ahead else work()

        return run


LIARS = (
    WithoutWaiter,
    WaiterThatDoesNotWait,
    WrongQueue,
    LazyResult,
    LazyEveryTime,
    WorkInTheWaiter,
)
