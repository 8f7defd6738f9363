"""A clock that waits for the device before it is read.

A round reads it before its first call and after its last. Reading a clock that first waits makes
every round end when its results exist. The moment before the wait is when the last call had
returned: dispatch, from the very rounds that were measured. How often the process was preempted,
and what processor time it took, is asked outside the rounds: before and after each, or each stretch
of short ones.
"""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NotRequired, TypedDict

from fwbench.measure.resources import CpuUse, cpu_use

Timer = Callable[[], float]

#: A round is preempted if it was as often as once in this many seconds of it, or of the processor
#: time that it got: a kernel gives a process that has to share its processor a few milliseconds at
#: a time, however long it then waits, and an epoch of seconds is preempted now and then on any
#: machine.
_SLICE_S = 10e-3

#: What the process has had of its processors is asked for once in so long a stretch of rounds: to
#: ask takes five microseconds in a process of a hundred threads, meanwhile processors fall asleep,
#: and work of twenty microseconds waits for them to wake up.
_STRETCH_S = 1e-3


class RoundFacts(TypedDict):
    """Facts of the rounds of a case; see :class:`fwbench.records.facts.CaseFacts`."""

    dispatch_s: NotRequired[float]
    completion_s: float
    cpu_s: float
    wall_s: float
    preempted: float


class Clock:
    """A clock for one case.

    Args:
        read: the clock proper, in seconds.
        wait: waits until the device is idle; None if calls return when their work is done.
    """

    #: The smallest difference that it can tell; None for that of the clock proper.
    precision_s: float | None = None

    def __init__(
        self,
        read: Timer = time.perf_counter,
        wait: Callable[[], Any] | None = None,
        use: Callable[[], CpuUse] = cpu_use,
    ) -> None:
        self.read = read
        self.wait = wait
        #: Done before each round, and waited for outside of it; None for nothing.
        self.before: Callable[[], Any] | None = None
        self._use = use
        self._in_round = False
        self._called = 0.0  # when the calls began whose dispatch is measured
        self._rounds: list[tuple[float, int]] = []  # until they had returned, and which stretch
        self._stretches: list[CpuUse] = []
        self._before: CpuUse | None = None  # when the stretch began; None between stretches
        self._since = 0.0
        self._untimed = False
        # How pytest-benchmark names the timer in its records.
        name = getattr(read, "__name__", read)
        self.__name__ = str(name) if wait is None else f"waiting({name})"

    def __call__(self) -> float:
        """Wait, then read: at the beginning of a round, and at its end."""
        # All code between the readings is in every round, of which some take microseconds.
        if self._in_round:
            returned = now = self.read()
            if self.wait is not None:
                self.wait()
                now = self.read()
            self._in_round = False
            if self._untimed:
                return now
            self._rounds.append((returned - self._called, len(self._stretches)))
            if now - self._since >= _STRETCH_S:
                self._end_stretch()
            return now
        self._in_round = True
        if self.before is not None:
            self.before()
        if self.wait is not None:
            self.wait()
        if not self._untimed:
            self._begin_stretch()
        self._called = self.read()
        return self._called

    def mark_last(self) -> None:
        """Say that the last call of a round begins, in which those before it were waited for."""
        self._called = self.read()

    def _begin_stretch(self) -> None:
        if self._before is not None:
            if self.read() - self._since < _STRETCH_S:
                return
            self._end_stretch()  # something else was done meanwhile
        self._before = self._use()
        self._since = self.read()

    def _end_stretch(self) -> None:
        if self._before is not None:
            self._stretches.append(self._use() - self._before)
            self._before = None

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """Wait as always within the block, and keep nothing of its rounds."""
        self._end_stretch()
        self._untimed = True
        try:
            yield
        finally:
            self._untimed = False

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Time one call to completion: seconds until the result existed, and the result."""
        start = self()
        result = call()
        return self() - start, result

    @property
    def is_in_stretch(self) -> bool:
        """True if what the process has had of its processors is asked for after later rounds."""
        return self._before is not None

    def forget(self, rounds: int) -> None:
        """Discard the latest rounds."""
        del self._rounds[-rounds:]

    def facts(self, rounds_s: Sequence[float], iterations: int) -> RoundFacts:
        """Facts of the rounds that were just measured.

        Args:
            rounds_s: completion time per iteration of each round.
            iterations: calls per round.

        Returns:
            Median dispatch and completion time of a call; processor time and time of all rounds;
            the share of rounds in which the process was preempted.
        """
        assert not self._in_round, "the timer was read an odd number of times"  # noqa: S101
        self._end_stretch()
        rounds = self._rounds[-len(rounds_s) :]
        stretches = [[*stretch] for _, stretch in itertools.groupby(rounds, lambda entry: entry[1])]
        used = [self._stretches[stretch[0][1]] for stretch in stretches]
        # pytest-benchmark keeps every timer for as long as the process lives.
        self._rounds, self._stretches = [], []
        # Of several calls that are waited for, dispatch is the last one's. By chance that may take
        # longer than the calls of its round did on average until they were done.
        dispatched = iterations if self.wait is None else 1
        dispatches_s = [
            min(returned_s / dispatched, round_s)
            for (returned_s, _), round_s in zip(rounds, rounds_s, strict=True)
        ]
        preempted = 0
        totals_s = iter(rounds_s)
        for stretch, use in zip(stretches, used, strict=True):
            longest_s = iterations * max(next(totals_s) for _ in stretch)
            preempted += preempted_rounds(len(stretch), longest_s, use)
        return {
            "dispatch_s": statistics.median(dispatches_s),
            "completion_s": statistics.median(rounds_s),
            "cpu_s": sum(use.cpu_s for use in used),
            "wall_s": iterations * sum(rounds_s),
            "preempted": preempted / len(rounds),
        }


def repeated(run: Callable[[], Any], times: int) -> Callable[[], Any]:
    """Calls ``run`` as often, and returns its last result."""

    def call() -> Any:
        for _ in range(times - 1):
            run()
        return run()

    return call


def preempted_rounds(rounds: int, longest_s: float, use: CpuUse) -> int:
    """In how many rounds it was preempted: more than any is that takes ``longest_s`` seconds."""
    slices = max(1, math.ceil(min(longest_s, use.cpu_s) / _SLICE_S))
    return min(rounds, use.preempted // slices)
