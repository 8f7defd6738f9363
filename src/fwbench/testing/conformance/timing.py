"""Checks of time: waiting really waits, and no more threads work than the adapter says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from fwbench.cases.case import bind
from fwbench.errors import ConformanceError
from fwbench.terms.presets import Size
from fwbench.testing.conformance.declarations import Adapter
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation

#: The shortest work, in seconds, that tells waiting from noise.
_LEAST_S = 0.03
_MOST_CALLS = 1 << 14

#: The shortest of several times counts, because other processes only ever make times longer.
_TRIES = 3

#: Reading a result takes up to this share of computing and reading it; work that remains after a
#: wait that did not wait takes more.
_READING = 0.5

#: Processor time that is not the computing threads': pytest's and the framework's housekeeping.
_SPARE_THREADS = 0.5


def longest(operations: Iterable[Operation]) -> Operation:
    """Choose the operation with the most arithmetic in its largest size."""

    def flops(operation: Operation) -> float:
        cost = operation.cost_of("forward", _sizes(operation)[-1])
        return cost.flops if cost else 0.0

    return max(operations, key=flops)


def waiting_waits(adapter: Adapter, cell: Cell) -> None:
    """Check that nothing is left to compute when the waiter has returned.

    Long work is started, the waiter is called, and the time to read the result is compared with
    the time of the work. The same holds for an adapter without a waiter, whose calls return when
    their work is done.

    Args:
        cell: an operation that can take long, where and how it runs.

    Raises:
        ConformanceError: reading took as long as the work, so the waiter had not waited for it.
    """
    with adapter.scope(cell.device, cell.dtype):
        start = _long_work(adapter, cell)
        whole_s = min(_whole_s(adapter, start) for _ in range(_TRIES))
        after_s = min(_after_waiting_s(adapter, start, cell.device) for _ in range(_TRIES))
    if after_s <= _READING * whole_s:
        return
    waiter = "waiter" if adapter.framework.waiter(cell.device) else "the call"
    raise ConformanceError(
        f"{cell.workload.name} took {whole_s:.3g} s to compute and read, and after {waiter} had "
        f"returned reading still took {after_s:.3g} s: {waiter} does not wait for the work on "
        f"{cell.device} ({cell.execution}). Return a function from waiter that blocks until all "
        "work on the device is done; None is for frameworks whose calls return when it is"
    )


def processor_time_fits_threads(adapter: Adapter, cell: Cell) -> None:
    """Check that no more threads work than the adapter says.

    Args:
        cell: an operation that can take long, on the CPU.

    Raises:
        ConformanceError: it used more processor time than its threads have.
    """
    threads = adapter.framework.threads()
    if threads is None:  # which the contract allows
        return
    with adapter.scope(cell.device, cell.dtype):
        start = _long_work(adapter, cell)
        used = min(_threads_used(adapter, start) for _ in range(_TRIES))
    if used > threads + _SPARE_THREADS:
        raise ConformanceError(
            f"threads() returns {threads}, and {cell.workload.name} kept {used:.1f} processors "
            "busy; set_threads must set the threads that the framework computes with, and "
            "threads() must return their number, or None if it cannot be known"
        )


def _sizes(operation: Operation) -> list[Size]:
    sizes = operation.by_preset
    return sorted({*sizes.quick, *sizes.full}, key=operation.number_of)


def _long_work(adapter: Adapter, cell: Cell) -> Callable[[], Any]:
    """A call that starts long work and returns its result: a larger size, and then more calls."""
    assert isinstance(cell.workload, Operation)  # noqa: S101 (as longest returns them)
    for size in _sizes(cell.workload):
        run = bind(replace(cell, size=size), adapter.framework).run
        adapter.read(run())  # compilation is not in the times
        if _whole_s(adapter, run) >= _LEAST_S:
            return run
    calls = 2
    while calls <= _MOST_CALLS:
        start = _repeated(run, calls)
        if _whole_s(adapter, start) >= _LEAST_S:
            return start
        calls *= 2
    raise ConformanceError(
        f"{_MOST_CALLS} calls of {cell.workload.name} took less than {_LEAST_S} s, too short to "
        "tell whether waiting waits; implement gemm or an activation"
    )


def _repeated(run: Callable[[], Any], calls: int) -> Callable[[], Any]:
    def start() -> Any:
        for _ in range(calls - 1):
            run()
        return run()

    return start


def _seconds(adapter: Adapter, call: Callable[[], Any]) -> float:
    start_s = adapter.timer()
    call()
    return adapter.timer() - start_s


def _whole_s(adapter: Adapter, start: Callable[[], Any]) -> float:
    """Seconds to compute and to read the result."""
    return _seconds(adapter, lambda: adapter.read(start()))


def _after_waiting_s(adapter: Adapter, start: Callable[[], Any], device: str) -> float:
    result = start()
    adapter.finish(device)
    return _seconds(adapter, lambda: adapter.read(result))


def _threads_used(adapter: Adapter, start: Callable[[], Any]) -> float:
    """Processors kept busy, on average, while the work was computed."""
    before_s = adapter.processor_timer()
    wall_s = _whole_s(adapter, start)
    return (adapter.processor_timer() - before_s) / wall_s
