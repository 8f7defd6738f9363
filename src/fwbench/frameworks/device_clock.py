"""The device's own clock: what a call takes there, whatever it takes to launch and to wait for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

EVENTS, CUPTI = "events", "cupti"

#: The device's own clocks.
DEVICE_CLOCKS = (EVENTS, CUPTI)


class DeviceClock(ABC):
    """Times calls by the clock of a device, whose queue is kept full meanwhile.

    The device must not wait for the host: what it waits would be in its times. So it is kept busy
    until all calls are enqueued, as nvbench does with a kernel that blocks (``measure_cold.cu``);
    or its pauses are left out, where kernels are timed and not calls.

    Attributes:
        name: what the record calls it: ``events`` around calls, or ``cupti``, the sum of kernels.
    """

    name: ClassVar[str] = EVENTS

    @abstractmethod
    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """The seconds that each of several calls took on the device; none where it does not tell.

        Args:
            run: one call.
            calls: how many; few enough for the device's queue.
            enqueue_s: what it takes to enqueue a call.
            before: enqueued before each call, and not timed.
        """
