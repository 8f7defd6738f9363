"""Threads that go on spinning when their work is done take a CPU from what is measured next."""

from __future__ import annotations

import time
from collections.abc import Callable

#: So long each look takes; a process is idle when it has used less than a tenth of it.
_LOOK_S = 2e-3
_IDLE = 0.1

#: Threads that are told to spin for ever are not waited for: OpenBLAS' do for 0.1 s by default, and
#: those of Intel's OpenMP for 0.2 s.
_AT_MOST_S = 0.3


def wait_until_idle(
    used_s: Callable[[], float] = time.process_time, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until no thread of this process computes, or for so long at most.

    Args:
        used_s: processor seconds of all threads of this process.
        sleep: lets time pass.
    """
    for _ in range(round(_AT_MOST_S / _LOOK_S)):
        before_s = used_s()
        sleep(_LOOK_S)
        if used_s() - before_s < _IDLE * _LOOK_S:
            return
