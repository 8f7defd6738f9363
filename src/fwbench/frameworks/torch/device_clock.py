"""CUDA events: PyTorch's way to the clock of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fwbench.frameworks.device_clock import DeviceClock

#: A kernel that spins for a number of cycles takes at least as long as at this clock; faster than
#: any GPU's, so that it never ends early.
_CYCLES_PER_S = 3e9

#: The device is kept busy for so many times what enqueueing is expected to take.
_SPARE = 2.0


class CudaEvents(DeviceClock):
    """Events around each call, in the stream that PyTorch enqueues work in."""

    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """By ``elapsed_time``, which counts in half microseconds."""
        events = [tuple(torch.cuda.Event(enable_timing=True) for _ in "ab") for _ in range(calls)]
        # PyTorch's own kernel for tests; there is no public one.
        torch.cuda._sleep(int(_SPARE * calls * enqueue_s * _CYCLES_PER_S))  # noqa: SLF001
        for start, end in events:
            before()
            start.record()
            run()
            end.record()
        events[-1][1].synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in events]
