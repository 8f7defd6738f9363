"""A machine that changes its speed in stretches, and functions that take their time on it."""

import math
import random
from collections.abc import Callable

#: How much longer everything takes at the lower speed, and how long either lasts.
SLOWER = 1.6
_STRETCHES_S = (15e-3, 4.0)


class TwoSpeeds:
    """A clock that functions move on; it alternates between two speeds.

    Stretches of either speed are log-uniform from 15 ms to 4 s.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 (no secret)
        self.now_s = 0.0
        self._is_slow = self.draw.random() < 1 / 2
        # It has begun some time ago.
        self._until_s = self.draw.random() * self._stretch_s()

    def __call__(self) -> float:
        """The time."""
        return self.now_s

    def _stretch_s(self) -> float:
        return math.exp(self.draw.uniform(*map(math.log, _STRETCHES_S)))

    def spend(self, seconds: float) -> None:
        """Let a function work that takes so long at full speed."""
        while True:
            factor = SLOWER if self._is_slow else 1.0
            left_s = (self._until_s - self.now_s) / factor
            if seconds <= left_s:
                self.now_s += seconds * factor
                return
            self.now_s, seconds = self._until_s, seconds - left_s
            self._is_slow = not self._is_slow
            self._until_s += self._stretch_s()

    def function(self, call_s: float, shape: str = "even") -> Callable[[], None]:
        """A function that takes so long in the median, at full speed.

        Args:
            shape: of its calls: ``even``, 1 % of noise; ``skewed``, as much below the median as
                three times that above; ``preempted``, in addition every 20th takes 2 ms more.
        """

        def call() -> None:
            noise = self.draw.gauss(0, 0.01)
            if shape == "skewed" and noise > 0:
                noise *= 10
            extra_s = 2e-3 if shape == "preempted" and self.draw.random() < 0.05 else 0.0
            self.spend(call_s * math.exp(noise) + extra_s)

        return call
