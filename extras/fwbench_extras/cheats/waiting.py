"""Cheats about completion: the work goes on, or has not begun, when the call returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import count
from queue import Queue
from threading import BoundedSemaphore
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import UnfinishedWork, UnreadableResult
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.cheat import Bind, Cheat, CheatingFramework, leaves, map_arrays
from fwbench_extras.cheats.honest import Compute

#: Calls that the queue of an asynchronous cheat has room for.
_QUEUED = 16


class Pending:
    """An array of a result that is yet to be computed: reading it waits for it.

    Args:
        result: returns the whole result of the call, once it is there.
        position: of the array among those of the result.
    """

    def __init__(self, result: Callable[[], Any], position: int) -> None:
        self._result = result
        self._position = position

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values, for NumPy."""
        return np.asarray(leaves(self._result())[self._position], dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        """A part of the values."""
        return np.asarray(self)[index]


def _deferred(defer: Callable[[BoundCall], Callable[[], Any]]) -> Bind:
    """Work whose results are :class:`Pending`.

    Args:
        defer: called with the work, returns the function that waits for its result.
    """

    def bind(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        work = partial(compute, *inputs)
        template = work()

        def run() -> Any:
            result = defer(work)
            positions = count()
            return map_arrays(lambda _: Pending(result, next(positions)), template)

        return run

    return bind


def _queued(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    """Work in the queue of one thread, as a device's; a call waits while it is full."""
    room = BoundedSemaphore(_QUEUED)
    queue = ThreadPoolExecutor(max_workers=1)

    def defer(work: BoundCall) -> Callable[[], Any]:
        room.acquire()
        future = queue.submit(work)
        future.add_done_callback(lambda _: room.release())
        return future.result

    return _deferred(defer)(compute, inputs)


class _Unpacked(list[Any]):
    """A list of results that are computed when it is unpacked."""

    def __init__(self, work: BoundCall) -> None:
        super().__init__()
        self._work = work

    def __iter__(self) -> Iterator[Any]:
        return iter(self._work())


#: Results in a row that nobody has read, after which work is put off.
_IGNORED = 3


def _late_once_ignored(compute: Compute, inputs: Sequence[Any], *, after: int) -> BoundCall:
    unread = 0

    def defer(work: BoundCall) -> Callable[[], Any]:
        nonlocal unread
        result = cache(work)
        if unread < after:
            result()
        unread += 1

        def read() -> Any:
            nonlocal unread
            unread = 0
            return result()

        return read

    return _deferred(defer)(compute, inputs)


#: Rows in ten that are there when a call returns.
_IN_TIME = 8


def _rest_in_a_thread(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    x, *others = inputs
    first = _IN_TIME * len(x) // 10
    pool = ThreadPoolExecutor(max_workers=1)

    def run() -> Any:
        there = compute(x[:first], *others)
        rest = pool.submit(compute, x[first:], *others)
        return Pending(lambda: np.concatenate([there, rest.result()]), 0)

    return run


class _WorkingWaiter(CheatingFramework):
    """Computes the next result in its waiter.

    The first wait after a call ends the round and does nothing; the second one is before the next.
    """

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
        """The result that was computed ahead; without it, the work."""
        work = self._work = partial(compute, *inputs)

        def run() -> Any:
            self._waits = 0
            return self._ahead.pop() if self._ahead else work()

        return run


class _ZeroElement(CheatingFramework):
    """Reads a result without looking at it."""

    def read_element(self, array: Any) -> NDArray[Any]:
        """A zero."""
        return np.zeros(1)


#: Large enough for the work to take longer than reading its result, also if a thread has begun it.
_late = partial(
    Cheat,
    caught_by=UnfinishedWork,
    why="reading a result back takes longer than reading alone explains",
    size=512,
)

CHEATS = (
    _late(
        name="without_waiter",
        fakes="Computes in another thread, and declares that calls return when their work is done.",
        mistake="a timing loop around asynchronous calls without a synchronisation",
        bind=_queued,
    ),
    _late(
        name="waiter_that_does_not_wait",
        fakes="Computes in another thread, and has a waiter that returns at once.",
        mistake="a synchronisation that is a no-op on this device, or is not awaited",
        bind=_queued,
        wait=lambda: None,
    ),
    _late(
        name="wrong_queue",
        fakes="Computes in one queue, and waits for another, which is empty.",
        mistake="synchronising the default stream while the work is on a stream of its own",
        bind=_queued,
        wait=Queue[Any]().join,
    ),
    _late(
        name="lazy_result",
        fakes="Returns a description of the work, which is done when the result is first read.",
        mistake="a lazy array or a data frame that is never materialised",
        bind=_deferred(cache),
        size=256,
    ),
    _late(
        name="lazy_every_time",
        fakes="Returns a description of the work, which is done whenever the result is read.",
        mistake="an expression or an iterator taken for its value",
        bind=_deferred(lambda work: work),
        size=256,
    ),
    _late(
        name="lazy_list",
        fakes="Returns a list that computes the result and the gradients when it is unpacked.",
        mistake="several lazy results, of which the list was looked at and not what is in it",
        why="unpacking it takes longer than unpacking a list explains",
        bind=lambda compute, inputs: lambda: _Unpacked(cache(partial(compute, *inputs))),
        directions=("backward",),
    ),
    _late(
        name="lazy_unless_read",
        fakes="Does the work in time if somebody has read the result before, otherwise when its "
        "result is read.",
        mistake="a prefetch that learns whether results are used",
        why="the result of the last timed call is read, as those before the rounds were",
        bind=partial(_late_once_ignored, after=1),
    ),
    _late(
        name="lazy_once_ignored",
        fakes="The same once nobody has read three results in a row.",
        mistake="a runtime that begins to defer work once it knows how it is used",
        why="the result of the last timed call is read, as those before the rounds were",
        bind=partial(_late_once_ignored, after=_IGNORED),
    ),
    _late(
        name="element_of_nothing",
        fakes="Works when a whole result is read, and says that its first element is 0.",
        mistake="a result that is taken to be there since its shape is known",
        caught_by=UnreadableResult,
        why="the element is compared with the result",
        bind=_deferred(cache),
        base=_ZeroElement,
        size=256,
    ),
    _late(
        name="rest_in_a_thread",
        fakes="Computes four fifths of the rows, and leaves the others to a thread.",
        mistake="a pipeline whose last stage is not waited for",
        bind=_rest_in_a_thread,
        directions=("forward",),
        size=1_024,
    ),
    _late(
        name="work_in_the_waiter",
        fakes="Does the work of the next call while the clock waits before a round begins.",
        mistake="work that moved from the timed part to its preparation, such as a prefetch",
        why="waiting for a device without work takes longer than the call",
        base=_WorkingWaiter,
    ),
)
