"""Clock, power and heat of a GPU while a case is measured, and rounds that say too little.

Looked at between rounds, not more often than the device would notice. Rounds since the last look
are set aside where the clock is far below its default, and are made again after a pause, as nvbench
does (``detail/measure_cold.cu``): for half a second, and then they count as they are.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from fwbench.measure.clock import Clock
from fwbench.measure.nvml import Gpu, GpuState, is_throttled

#: From one look to the next: NVML answers in 3 us (H200).
_EACH_S = 20e-3

#: How long a throttled GPU is left alone at a time, and all together.
_PAUSE_S = 0.05
_PAUSES_AT_MOST = 10


class GpuWatch:
    """Looks at a GPU between the rounds of a case."""

    def __init__(self, gpu: Gpu, clock: Clock) -> None:
        self._gpu = gpu
        self._clock = clock
        self.energy = EnergyMeter(gpu, clock)
        self._default_hz = gpu.default_sm_clock_hz
        self._states: list[GpuState] = []
        self._unseen_s: list[float] = []
        self._looked_s = clock.read()
        self._pauses = 0
        self._discarded = 0

    def sift(self, round_s: float) -> Sequence[float]:
        """The rounds that count, once it was looked at the clock that they ran at.

        Args:
            round_s: the time of one more round; it is among those of this call or of a later one,
                or it is set aside.
        """
        self._unseen_s.append(round_s)
        if self._clock.read() - self._looked_s < _EACH_S:
            return ()
        rounds_s, self._unseen_s = self._unseen_s, []
        state = self._look()
        if is_throttled(state, self._default_hz) and self._pauses < _PAUSES_AT_MOST:
            self._set_aside(len(rounds_s))
            return ()
        return rounds_s

    def facts(self) -> dict[str, Any]:
        """State of the GPU from the first reading until now, for the record."""
        last = self._look()
        clocks_hz = [state.sm_clock_hz for state in self._states if state.sm_clock_hz is not None]
        reasons = [state.reasons for state in self._states if state.reasons is not None]
        every = {reason: None for some in reasons for reason in some if reason != "idle"}
        return {
            "sm_clock_hz": statistics.median(clocks_hz) if clocks_hz else None,
            "throttled": [*every] if reasons else None,
            "power_w": last.power_w,
            "temperature_c": last.temperature_c,
            "discarded_rounds": self._discarded,
        }

    def _look(self) -> GpuState:
        self._states.append(self._gpu.state())
        self._looked_s = self._clock.read()
        return self._states[-1]

    def _set_aside(self, rounds: int) -> None:
        self._clock.forget(rounds)
        self._discarded += rounds
        self._pauses += 1
        time.sleep(_PAUSE_S)
        self._looked_s = self._clock.read()


#: The shortest time whose energy is known, to 5 %: an H200's counter moves every 0.1 s.
LEAST_S = 2.0


class EnergyMeter:
    """Tells the energy that a GPU takes from now on."""

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
        # Of a driver that was reloaded it begins at 0 again.
        return after_j - self._before_j if after_j > self._before_j else None

    def _total_j(self) -> float | None:
        return self._gpu.energy_j() if self._gpu else None
