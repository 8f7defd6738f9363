"""Is the work done when the clock says so? Then reading its result takes as long as reading.

A framework whose calls return early, and whose waiter does not wait, is timed while it enqueues
work; one whose results are computed when they are read is timed while it does nothing. Either way
the work remains to be done when the result is read. The clock also waits before a round, untimed: a
waiter that works then is found by how long it waits where there is nothing to wait for.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence

from fwbench.cases import reading
from fwbench.cases.work import Work
from fwbench.errors import UnfinishedWork
from fwbench.frameworks.contract import Array, Framework
from fwbench.grid import Cell
from fwbench.measure.clock import Clock
from fwbench.names import answered_dtype
from fwbench.records.units import time as shown

#: Work that remains is in every reading. What else takes time, such as other processes or whatever
#: a framework prepares when it reads for the first time, is not in the shortest of so many. The
#: second shortest counts: work may be done while this process has to wait for a processor.
_TRIES = 60

#: Nor may a single disturbed call look long, or one reading of what was there: so many tries are
#: made at least, except of calls that take longer than a disturbance.
_TRIES_AT_LEAST = 3
_LONG_S = 0.1

#: Before every third of the further tries: a process that has slept keeps its processor for a
#: while, and on a busy machine every reading would be disturbed otherwise. Only the first call
#: after a pause finds cold caches. The second half of the tries outlasts what keeps a machine busy
#: for a moment: with 15 processes that wait for two processors, one of 3,000 honest cases had 30
#: readings that were all disturbed.
_PAUSE_S = 0.01
_LONG_PAUSE_S = 0.1
_PAUSE_EACH = 3

#: What the shortest reading may take: so many times reading alone, this share of the call, and so
#: many seconds. JAX's first readings of results take twice as long as later ones.
_ALONE = 2.0
_SHARE = 0.5
_SPARE_S = 20e-6

#: What waiting for nothing may take: this share of the call, and so many seconds more.
_IDLE_SHARE = 0.5
_IDLE_SPARE_S = 200e-6


def check(work: Work, framework: Framework, cell: Cell, clock: Clock) -> float:
    """Check that nothing is left to compute when a call is over for the clock.

    An element of every array of the result is read, and one of new arrays with the same values
    that were placed before: the difference is work that had remained.

    Args:
        work: verified and warmed up.
        framework: that computes it.
        cell: of the work.
        clock: times it.

    Returns:
        Seconds that waiting takes where there is nothing to wait for: the shortest of its tries.

    Raises:
        UnfinishedWork: reading took longer than that, each time, or waiting for nothing did.
    """
    readings_s: list[float] = []
    call_s = alone_s = idle_s = math.inf
    for tries in range(1, 1 + _TRIES):
        if tries > _TRIES_AT_LEAST and tries % _PAUSE_EACH == 1 and call_s < _LONG_S:
            time.sleep(_PAUSE_S if tries <= _TRIES // 2 else _LONG_PAUSE_S)
        taken_s, result = clock.time(work.run)
        idle_s = min(idle_s, _idle_s(clock))
        arrays = work.arrays(result)
        readings_s.append(_reading_s(framework, clock, arrays))
        shortest_s = heapq.nsmallest(2, readings_s)[-1]
        there = [_placed(framework, cell, array) for array in arrays]
        alone_s = min(alone_s, _reading_s(framework, clock, there))
        call_s = min(call_s, taken_s)
        is_done = shortest_s <= _ALONE * alone_s + _SHARE * call_s + _SPARE_S
        is_idle = idle_s <= _IDLE_SHARE * call_s + _IDLE_SPARE_S
        if is_done and is_idle and (tries >= _TRIES_AT_LEAST or call_s >= _LONG_S):
            return idle_s
    if is_done:
        raise UnfinishedWork(
            "work is done while fwbench waits before a round, and not in the call: to wait for a "
            f"device without work took at least {shown(idle_s)}, and a call {shown(call_s)}; "
            "compute in calls, and return from waiter what does nothing but wait"
        )
    raise UnfinishedWork(
        "calls return before their work is done, and the framework's `waiter` does not wait: to "
        f"read one element of the result took at least {shown(shortest_s)} after calls of "
        f"{shown(call_s)}, and {shown(alone_s)} where the same values were there already; return "
        "from waiter what blocks until all work is done, and from calls no results that are "
        "computed when they are read"
    )


def _idle_s(clock: Clock) -> float:
    """Seconds that the framework waits once where there is nothing to wait for."""
    if clock.wait is None:
        return 0.0
    start_s = clock.read()
    clock.wait()
    return clock.read() - start_s


def _placed(framework: Framework, cell: Cell, array: Array) -> Array:
    """An array with the same values that is surely there."""
    values = reading.read(framework, array)
    dtype = answered_dtype(cell.dtype) if values.dtype.kind == "f" else values.dtype.name
    placed = framework.creator(cell.device, dtype)(values)
    framework.to_numpy(placed)
    return placed


def _reading_s(framework: Framework, clock: Clock, arrays: Sequence[Array]) -> float:
    """Seconds until an element of each array has been read."""
    with reading.guarded(framework, *arrays):
        start_s = clock.read()
        for array in arrays:
            framework.read_element(array)
        return clock.read() - start_s
