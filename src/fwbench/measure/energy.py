"""The energy that a GPU takes for work, by NVML's counter.

The counter is of the whole device, in thousandths of a joule since its driver was loaded
(nvmlDeviceGetTotalEnergyConsumption in the NVML API Reference). It does not move with every call,
and NVML does not say how often it does: so nothing is told of a short time.
"""

from __future__ import annotations

from fwbench.measure.clock import Clock
from fwbench.measure.nvml import Gpu

#: The shortest time whose energy is told: some five times what the counter may need to move.
LEAST_S = 0.5


class EnergyMeter:
    """Tells the energy that a GPU takes from now on.

    Args:
        gpu: which; None where it is not known.
        clock: for the time meanwhile.
    """

    def __init__(self, gpu: Gpu | None, clock: Clock) -> None:
        self._gpu = gpu
        self._clock = clock
        self._before_j = self._total_j()
        self._since_s = clock.read()

    def used_j(self) -> float | None:
        """Joules until now; None where NVML does not count them, and after too short a time."""
        after_j = self._total_j()
        is_short = self._clock.read() - self._since_s < LEAST_S
        if after_j is None or self._before_j is None or is_short:
            return None
        # Of a driver that was loaded anew it begins at 0 again.
        return after_j - self._before_j if after_j > self._before_j else None

    def _total_j(self) -> float | None:
        return self._gpu.energy_j() if self._gpu else None
