"""A clock that waits for the device before it is read.

pytest-benchmark reads its timer exactly twice a round, before and after the calls. Reading a clock
that first waits makes every round end when its results exist. The moment before the wait is when
the calls had returned: dispatch, from the very rounds that were measured, for some 0.2 us a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

Timer = Callable[[], float]


class Clock:
    """A clock for one case.

    Args:
        read: the clock proper, in seconds.
        wait: waits until the device is idle; None if calls return when their work is done.
    """

    def __init__(
        self, read: Timer = time.perf_counter, wait: Callable[[], Any] | None = None
    ) -> None:
        self.read = read
        self.wait = wait
        self._waited_s: list[float] = []
        # How pytest-benchmark names the timer in its records.
        self.__name__ = f"waiting({getattr(read, '__name__', read)})"

    @property
    def timer(self) -> Timer:
        """For pytest-benchmark: this clock, or the bare one where there is nothing to wait for."""
        return self.read if self.wait is None else self

    def __call__(self) -> float:
        """Wait, then read."""
        returned = self.read()
        self.wait()  # type: ignore[misc]  # `timer` hands out the bare clock if there is none
        now = self.read()
        self._waited_s.append(now - returned)
        return now

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Time one call to completion.

        Returns:
            Seconds until the result existed, and the result.
        """
        timer = self.timer
        start = timer()
        result = call()
        return timer() - start, result

    def dispatch_s(self, rounds_s: Sequence[float], iterations: int) -> float:
        """The median time until a call returned, in the rounds that were just measured.

        Args:
            rounds_s: completion time per iteration of each round.
            iterations: calls per round.
        """
        if self.wait is None:
            return statistics.median(rounds_s)
        # Two readings a round; only the second one's wait lies inside the round.
        waits = self._waited_s[-2 * len(rounds_s) :][1::2]
        # pytest-benchmark keeps every timer for as long as the process lives.
        self._waited_s = []
        return statistics.median(
            total - waited / iterations for total, waited in zip(rounds_s, waits, strict=True)
        )
