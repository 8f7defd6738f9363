"""A GPU whose every time is known: launches, kernels, waits, a clock that rises, and errors.

Durations that are sums of powers of two are exact, so tests compare to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fwbench.frameworks.device_clock import DeviceClock
from fwbench.testing import FakeFramework, HandClock
from support.fake_nvml import Card, FakeNvml


class SimulatedGpu(HandClock):
    """A device that works off a queue at the clock that it has when a kernel begins.

    Attributes:
        frequency_hz: the clock, by the time at which a kernel begins.
        wait_s: what the host takes to wait, whether or not there is anything to wait for.
        busy_s: how long kernels have run, all together.
        is_spoiled: whether a kernel has gone wrong: every wait raises its error from then on.
    """

    def __init__(
        self, frequency_hz: Callable[[float], float] = lambda _: 2.0**30, wait_s: float = 0.0
    ) -> None:
        super().__init__()
        self.frequency_hz = frequency_hz
        self.wait_s = wait_s
        self.busy_s = 0.0
        self.is_spoiled = False

    def launch(self, cycles: float) -> None:
        """Enqueue a kernel of so many cycles."""
        begin_s = max(self.now_s, self.idle_s)
        seconds = cycles / self.frequency_hz(begin_s)
        self.busy_s += seconds
        self.enqueue(seconds)

    def event(self) -> float:
        """When the device comes to what is enqueued now."""
        return max(self.now_s, self.idle_s)

    def wait(self) -> None:
        """Let time pass until the queue is empty, and what waiting takes.

        Raises:
            RuntimeError: a kernel has gone wrong.
        """
        super().wait()
        self.spend(self.wait_s)
        if self.is_spoiled:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def card(self, default_hz: float = 2.0**30, **facts: Any) -> Card:
        """What NVML says of it: its clock as it is now."""
        return Card(
            "GPU-simulated",
            clock_mhz=lambda: self.frequency_hz(self.now_s) / 1e6,
            default_mhz=default_hz / 1e6,
            **facts,
        )

    def nvml(self, **facts: Any) -> FakeNvml:
        """NVML, with this GPU alone."""
        return FakeNvml(self.card(**facts))


class Events(DeviceClock):
    """The device's own clock, which a queue keeps busy until all is enqueued."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu

    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """From event to event."""
        self._gpu.enqueue(2 * calls * enqueue_s)
        times_s = []
        for _ in range(calls):
            before()
            start_s = self._gpu.event()
            run()
            times_s.append(self._gpu.event() - start_s)
        self._gpu.wait()
        return times_s


@dataclass
class OnSimulatedGpu(FakeFramework):
    """The fake framework on that GPU.

    Attributes:
        gpu: the device.
        launch_s: what a call takes until it returns.
        cycles: of its kernel, whose data is in the cache.
        cold_cycles: of its kernel where that is not so.
        flush_cycles: of what empties the cache; 0: the framework cannot do that.
        has_events: whether it gives access to the device's own clock.
    """

    gpu: SimulatedGpu = field(default_factory=SimulatedGpu)
    launch_s: float = 2.0**-18
    cycles: float = 2.0**11
    cold_cycles: float = 2.0**13
    flush_cycles: float = 2.0**15
    has_events: bool = True
    is_cold: bool = False

    def __post_init__(self) -> None:
        self.clock = self.gpu

    def _cost(self) -> None:
        self.clock.spend(self.launch_s)
        self.gpu.launch(self.cold_cycles if self.is_cold else self.cycles)
        self.is_cold = False

    def device_clock(self, device: str) -> DeviceClock | None:
        """Events, if it has them."""
        return Events(self.gpu) if self.has_events else None

    def flusher(self, device: str) -> Callable[[], Any] | None:
        """A kernel that empties the cache, if it has one."""
        return self._flush if self.flush_cycles else None

    def _flush(self) -> None:
        self.gpu.launch(self.flush_cycles)
        self.is_cold = True

    def to_numpy(self, array: Any) -> Any:
        """After all work is done; reading is no wait of the clock's."""
        HandClock.wait(self.gpu)
        return np.asarray(array)
