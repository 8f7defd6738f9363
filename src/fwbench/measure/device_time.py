"""Time of a call on the device itself, without launching it and waiting for it.

A kernel of 2 us that takes 4 us to launch and 5 us to wait for is done after 11 us; alone that says
little of the device. Two figures say more: the device's own clock around each call, while its queue
is full; and how much longer twice as many calls take, which needs no clock but the host's, and
tells whichever is slower, the device or the launch.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fwbench.frameworks.gpus import CUPTI, DeviceClock
from fwbench.measure.clock import Clock, repeated

#: So much work tells the time of a call, ...
_WORK_S = 5e-3
#: ... in this many calls at most: a queue of CUDA's has about a thousand places, and a call may be
#: several kernels. The device's clock times this many calls at least.
_CALLS_AT_MOST = 64
_TIMED_AT_LEAST = 5

#: The slope is the median of this many, or of one where that takes longer than this.
_SLOPES = 5
_LONG_S = 0.1

#: So few calls are timed by CUPTI beside another clock: each attaches it and detaches it again.
_KERNEL_CALLS = 3

SLOPE = "slope"

_NO_ACCESS = "the framework's adapter gives no access to the clock of the device"


@dataclass(frozen=True)
class DeviceTime:
    """Time of a call on its device: facts of :class:`~fwbench.records.facts.CaseFacts`."""

    device_s: float | None
    device_clock: str
    throughput_s: float | None
    slope_reason: str | None = None
    kernels_s: float | None = None


def device_time(
    run: Callable[[], Any],
    clock: Clock,
    device_clock: DeviceClock | None,
    before: Callable[[], Any] | None = None,
) -> DeviceTime:
    """Time calls on the device.

    Args:
        device_clock: the device's own; None where the framework gives no access to it.
        before: enqueued before each call, such as what empties the device's cache; None for
            nothing. The slope cannot leave it out, and is not taken then.
    """
    enqueue_s, call_s = _typical(run, clock)
    calls = max(1, min(_CALLS_AT_MOST, math.ceil(_WORK_S / call_s)))
    slope_s = None if before else _slope_s(run, clock, calls, call_s)
    times_s = []
    if device_clock is not None:
        timed = max(calls, _TIMED_AT_LEAST)
        times_s = device_clock.times_s(run, timed, enqueue_s, before or (lambda: None))
    if device_clock is None:
        return DeviceTime(slope_s, SLOPE, slope_s, _NO_ACCESS)
    if not times_s:
        reason = device_clock.failure or f"{device_clock.name} have told nothing"
        return DeviceTime(slope_s, SLOPE, slope_s, reason)
    device_s, name = statistics.median(times_s), device_clock.name
    return DeviceTime(device_s, name, slope_s, kernels_s=device_s if name == CUPTI else None)


def kernel_time(
    run: Callable[[], Any],
    kernel_clock: DeviceClock | None,
    before: Callable[[], Any] | None = None,
) -> dict[str, Any]:
    """Time a few calls by CUPTI, where the device's clock is another one.

    Args:
        kernel_clock: None for nothing to be added.
        before: called before each of them, and not timed.

    Returns:
        Facts of :class:`~fwbench.records.facts.CaseFacts`.
    """
    if kernel_clock is None:
        return {}
    times_s = kernel_clock.times_s(run, _KERNEL_CALLS, 0.0, before or (lambda: None))
    if not times_s:
        reason = kernel_clock.failure or f"{kernel_clock.name} has told nothing"
        return {"kernels_s": None, "kernels_reason": reason}
    return {"kernels_s": statistics.median(times_s), "kernels_reason": None}


def _typical(run: Callable[[], Any], clock: Clock) -> tuple[float, float]:
    """Seconds until a call has returned, the longer of two; and until it is done, the shorter."""
    returned_s, done_s = [], []
    for _ in range(2):
        start_s = clock()
        run()
        returned_s.append(clock.read() - start_s)
        done_s.append(clock() - start_s)
    return max(returned_s), max(min(done_s), 1e-9)


def _slope_s(run: Callable[[], Any], clock: Clock, calls: int, call_s: float) -> float | None:
    """Time of each further call: the difference of twice as many calls and as many, for each."""
    slopes_s = []
    for _ in range(_SLOPES if calls * call_s < _LONG_S else 1):
        once_s, _result = clock.time(repeated(run, calls))
        twice_s, _result = clock.time(repeated(run, 2 * calls))
        slopes_s.append((twice_s - once_s) / calls)
    slope_s = statistics.median(slopes_s)
    return slope_s if slope_s > 0 else None
