"""Warm up until steady, before pytest-benchmark sizes its rounds from a call.

Calls are made in blocks of at least a millisecond. A case is steady when the medians of the last
two runs of five blocks differ by no more than 5 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fwbench.measure.clock import Clock

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

_BLOCK_S = 1e-3
#: A block of so many calls that is still shorter: the clock does not move.
_CALLS_AT_MOST = 2**20
_BLOCKS = 5
_BLOCKS_AT_LEAST = 2
_STEADY_WITHIN = 0.05


@dataclass(frozen=True)
class WarmUp:
    """What warming up took, after the first call.

    Attributes:
        calls: how many calls.
        seconds: how long they took together.
        steady: whether their times had settled; None where nothing was warmed up.
    """

    calls: int
    seconds: float
    steady: bool | None


def warm_up(run: Callable[[], Any], clock: Clock, limit_s: float) -> WarmUp:
    """Call ``run`` until its times have settled, or for ``limit_s`` seconds.

    Two blocks are made even if one outlasts the limit: one alone tells nothing.

    Args:
        run: the bound work.
        clock: waits for the device after every block.
        limit_s: how long at most; 0 for no warm-up.
    """
    if limit_s <= 0:
        return WarmUp(0, 0.0, None)
    per_call_s: list[float] = []
    size = 1
    calls = 0
    total_s = 0.0
    while not (len(per_call_s) >= 2 * _BLOCKS and _settled(per_call_s[-2 * _BLOCKS :])):
        if total_s >= limit_s and len(per_call_s) >= _BLOCKS_AT_LEAST:
            return WarmUp(calls, total_s, _settled(per_call_s[-2 * _BLOCKS :]))
        block_s, _ = clock.time(partial(_repeat, run, size))
        calls += size
        total_s += block_s
        if block_s < _BLOCK_S and total_s < limit_s and size < _CALLS_AT_MOST:
            size *= 2
        else:
            per_call_s.append(block_s / size)
    return WarmUp(calls, total_s, True)


def _repeat(run: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        run()


def _settled(times_s: Sequence[float]) -> bool:
    half = len(times_s) // 2
    earlier = statistics.median(times_s[:half])
    later = statistics.median(times_s[half:])
    return abs(later - earlier) <= _STEADY_WITHIN * max(earlier, later)
