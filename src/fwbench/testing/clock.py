"""A clock that stands still until it is moved by hand."""

from __future__ import annotations


class HandClock:
    """A clock that moves only when a test moves it, and a device that works off a queue.

    Whoever waits for the device moves the clock to the moment when the queue is empty, so times are
    exact. Durations that are sums of powers of two stay exact as floating-point numbers, too.

    Attributes:
        now_s: the time that the clock shows.
        idle_s: when the device will have done all the work in its queue.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.idle_s = 0.0

    def __call__(self) -> float:
        """Returns the time in seconds, as ``time.perf_counter`` does."""
        return self.now_s

    def spend(self, seconds: float) -> None:
        """Let time pass while the caller is busy."""
        self.now_s += seconds

    def enqueue(self, seconds: float) -> None:
        """Add work to the device's queue; it starts when the work before it is done."""
        self.idle_s = max(self.now_s, self.idle_s) + seconds

    def wait(self) -> None:
        """Let time pass until the device's queue is empty."""
        self.now_s = max(self.now_s, self.idle_s)
