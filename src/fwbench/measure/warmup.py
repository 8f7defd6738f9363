"""Warm up until steady, before pytest-benchmark sizes its rounds from a call.

Calls are made in blocks of at least a millisecond. A case is steady when the medians of the last
two runs of five blocks differ by no more than 5 %, or of fewer once calls have taken 50 ms. Short
calls that another thread computes are made for as long in any case: Linux lets that thread share a
CPU with the one that waits for it, where a short call takes a third to two thirds of the time, and
moves one of them away for good by then. A call that makes its thread lose or give away its
processor is such a call.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwbench.machine import threads_run
from fwbench.measure.clock import Clock, repeated
from fwbench.measure.nvml import POWER, Gpu, GpuState, is_throttled
from fwbench.measure.resources import other_threads_s, thread_switches

_BLOCK_S = 1e-3
#: A block of this many calls that is still shorter: the clock does not move.
_CALLS_AT_MOST = 2**20
_BLOCKS = 5
_BLOCKS_OF_LONG_CALLS = 4
_BLOCKS_AT_LEAST = 2
_STEADY_WITHIN = 0.05


@dataclass(frozen=True)
class WarmUp:
    """Result of warming up, after the first call."""

    calls: int
    seconds: float
    #: Whether their times had settled; None where nothing was warmed up.
    steady: bool | None
    #: Time of a call on a GPU that has rested; None unless calls take one to its power limit.
    burst_s: float | None = None
    #: Whether other threads of the process computed, too; None where that is not known.
    is_parallel: bool | None = None


#: For how long short calls of another thread are made. Of 363 such cases 9.4 % are off by more than
#: 30 % in the 40 ms after the first 10, 7.2 % after 20, 4.4 % after 40, 3.0 % after 50, 1.9 % after
#: 80. To be woken up takes some 50 us, which calls that fill a block do not show.
HANDED_OVER_S = 0.05

#: A call of another thread switches processes once or more, one of the same thread not even once
#: in a hundred.
_SWITCHES = 0.5

#: Other threads have computed if they used more processor time than this share of that of calls.
_OF_OTHERS = 0.05


def warm_up(
    run: Callable[[], Any],
    clock: Clock,
    limit_s: float,
    at_least_s: float = 0.0,
    *,
    hands_over: bool = False,
    switches: Callable[[], int] = thread_switches,
    of_others_s: Callable[[], float] = other_threads_s,
) -> WarmUp:
    """Call ``run`` until its times have settled, or for ``limit_s`` seconds.

    Two blocks are made even if one outlasts the limit: one alone tells nothing.

    Args:
        limit_s: how long at most; 0 for no warm-up.
        at_least_s: how long also if times have settled before, up to that limit.
        hands_over: whether another thread computes each call; if not, it does where this one has
            lost its processor in every second call.
        switches: how often it has so far.
        of_others_s: processor time of other threads so far.
    """
    if limit_s <= 0:
        return WarmUp(0, 0.0, None)
    before, others_s = switches(), of_others_s()
    per_call_s: list[float] = []
    size, calls, total_s = 1, 0, 0.0
    while True:
        latest_s = per_call_s[-2 * _BLOCKS :]
        is_handed_over = hands_over or switches() - before >= _SWITCHES * calls
        least_s = max(at_least_s, HANDED_OVER_S if is_handed_over and size > 1 else 0.0)
        blocks = 2 * _BLOCKS if total_s < HANDED_OVER_S else _BLOCKS_OF_LONG_CALLS
        is_enough = total_s >= least_s and len(latest_s) >= blocks and _settled(latest_s)
        if is_enough or (total_s >= limit_s and len(latest_s) >= _BLOCKS_AT_LEAST):
            break
        block_s, _ = clock.time(repeated(run, size))
        calls += size
        total_s += block_s
        if block_s < _BLOCK_S and total_s < limit_s and size < _CALLS_AT_MOST:
            size *= 2
        else:
            per_call_s.append(block_s / size)
    is_parallel = of_others_s() - others_s > _OF_OTHERS * total_s
    return WarmUp(calls, total_s, _settled(latest_s), is_parallel=is_parallel)


#: A GPU is kept busy for this long at least, and this long at most while its clock rises: an idle
#: one has a fifth of it, and ramps of up to 0.3 s are reported.
_BUSY_AT_LEAST_S = 0.2
_BUSY_AT_MOST_S = 2.0
#: The clock has settled when this many readings, each after a stretch of work, are within 1 %, and
#: not on the way up: an idle GPU keeps its low clock for a while.
_STRETCH_S = 10e-3
_READINGS = 5
_SETTLED_WITHIN = 0.01


#: A GPU that is at its power limit rests for so long, and calls in as much time as that are those
#: of its higher clock then: an H200 multiplies at 790 TFLOP/s for 60 ms, and at 670 from then on.
_REST_S = 0.5
_BURST_S = 50e-3


def warm_device(run: Callable[[], Any], clock: Clock, gpu: Gpu | None) -> WarmUp:
    """Keep a GPU busy until its clock has settled; of one at its power limit tell bursts, too.

    What is timed after that is what the GPU sustains.
    """
    warmed = _settle(run, clock, gpu)
    if gpu is None or POWER not in (gpu.reasons() or ()):
        return warmed
    time.sleep(_REST_S)
    times_s: list[float] = []
    while sum(times_s) < _BURST_S:
        times_s.append(clock.time(run)[0])
    again = _settle(run, clock, gpu)
    calls = warmed.calls + len(times_s) + again.calls
    seconds = warmed.seconds + sum(times_s) + again.seconds
    # One call that is longer than a burst is none.
    burst_s = statistics.median(times_s) if len(times_s) > 1 else None
    return WarmUp(calls, seconds, again.steady, burst_s)


def _settle(run: Callable[[], Any], clock: Clock, gpu: Gpu | None) -> WarmUp:
    """Call until the clock has risen: before that calls tell of the ramp.

    The medians that :func:`warm_up` compares are a hundredth of a second apart, and so do not see a
    clock that takes a quarter of one.
    """
    readings: list[GpuState] = []
    default_hz = gpu.default_sm_clock_hz if gpu else None
    size, calls, total_s = 1, 0, 0.0
    while total_s < _BUSY_AT_MOST_S:
        stretch_s, _ = clock.time(repeated(run, size))
        calls += size
        total_s += stretch_s
        if stretch_s < _STRETCH_S and size < _CALLS_AT_MOST:
            size *= 2
        readings = [*readings, gpu.state()][-_READINGS:] if gpu else []
        clocks_hz = [state.sm_clock_hz for state in readings if state.sm_clock_hz is not None]
        if total_s < _BUSY_AT_LEAST_S:
            continue
        if not clocks_hz:
            return WarmUp(calls, total_s, None)
        if _have_settled(clocks_hz) and not is_throttled(readings[-1], default_hz):
            return WarmUp(calls, total_s, True)
    return WarmUp(calls, total_s, False)


def _have_settled(clocks_hz: Sequence[float]) -> bool:
    lowest, highest = min(clocks_hz), max(clocks_hz)
    return len(clocks_hz) == _READINGS and highest - lowest <= _SETTLED_WITHIN * highest


def _settled(times_s: Sequence[float]) -> bool:
    half = len(times_s) // 2
    earlier = statistics.median(times_s[:half])
    later = statistics.median(times_s[half:])
    return abs(later - earlier) <= _STEADY_WITHIN * max(earlier, later)


#: From one look to the next; and the share of it that idle threads use, on macOS.
_LOOK_S = 1e-3
_IDLE = 0.1
_LISTS_THREADS = Path("/proc/self/task").exists()

#: Threads that are set to spin for ever are not waited for: those of ONNX Runtime do for 30 ms,
#: OpenBLAS' for 0.1 s by default, and those of Intel's OpenMP for 0.2 s.
_AT_MOST_S = 0.3


def _others_run() -> bool:
    """True if another thread of this process computes; by its time where the system lists none."""
    if _LISTS_THREADS:
        return threads_run()
    before_s = other_threads_s()
    time.sleep(_LOOK_S)
    return other_threads_s() - before_s > _IDLE * _LOOK_S


def wait_until_idle(
    are_running: Callable[[], bool] = _others_run, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until no other thread of this process computes, or for so long at most."""
    for _ in range(round(_AT_MOST_S / _LOOK_S)):
        if not are_running():
            return
        sleep(_LOOK_S)
