"""Full speed of CPUs: a loop that tells it, and rounds that are set aside without it.

Another guest of the machine on the other half of a core makes it up to half as fast, for 15 ms to 4
s at a time, and nothing that the system counts shows it. The time of a short loop shows it. So the
loop is run before rounds and after them, and rounds are set aside where it took longer than it can.
The choice looks at the loop alone, never at the rounds, so it has no direction; nor are times ever
divided by what the loop took, since work suffers by other factors.
"""

import math
import os
import statistics
import time
from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from fwbench.measure.clock import Clock

#: What the loop adds up, in some 30 us: long enough to be told from noise. In C, since Python's
#: bytecode takes up to 1.37 times as long in one thread as in the next (docs/figures.md).
_NUMBERS = range(3500)

#: Full speed is that of the fastest twentieth of the loops on a CPU, or slower by so much at most,
#: which the clock of a CPU changes by itself.
_TWENTIETH = 20
_SLOWER_AT_MOST = 1.3

#: So many loops are remembered of each CPU; then every second one.
_REMEMBERED = 4000

#: A CPU that was idle for 20 ms is half as fast for one or two (docs/figures.md), which is nobody
#: else's doing: so the loop is run for longer than that before it tells. Where that was in vain,
#: it is not done again before the CPU can have been idle for as long.
_AWAKE_S, _ASLEEP_S = 3e-3, 20e-3

#: The loops are run again after so many seconds, less than half of the shortest time for which a
#: CPU is slow. Of a case whose first round is shorter, the one right behind the loops never counts:
#: it finds caches as these have left them, and wakes the threads that fell asleep meanwhile.
_EACH_S = 6e-3

#: Rounds of a case are set aside for this long at most, and those of a process for this share of
#: its processor time besides: not of its life, most of which it waits for the other frameworks.
#: Then they count as they are: where CPUs are of two kinds one is always slower.
_SET_ASIDE_AT_MOST_S, _SHARE_AT_MOST = 0.5, 0.01

#: On machines with more CPUs only the one that makes the calls is looked at.
_CPUS_AT_MOST = 8


def _loop_s() -> float:
    start_s = time.perf_counter()
    sum(_NUMBERS)
    return time.perf_counter() - start_s


#: What the loop has taken at moments before there were rounds.
_NOTICED_S: list[float] = []

#: What others have found counts as so many loops of this process, until it has seen enough itself.
_OF_OTHERS = 50


def notice(known_s: float | None = None) -> None:
    """Run the loop once, since a CPU may be slow through all of a process's first rounds.

    Args:
        known_s: what the loop takes at full speed, as an earlier process has found.
    """
    _NOTICED_S.extend([_loop_s(), *[known_s] * _OF_OTHERS] if known_s else [_loop_s()])


class Loop:
    """The loop on a CPU.

    Args:
        run: runs it, and returns its seconds.
        now: the time in seconds.
    """

    def __init__(
        self, run: Callable[[], float] = _loop_s, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._run = run
        self._now = now
        self._slow_s = -math.inf
        self._sorted_s = sorted(_NOTICED_S)

    def is_fast(self) -> bool:
        """Run it; True if that was at full speed, as far as this process has seen that.

        Run again if not, for some milliseconds at most: by then an interrupt is over, and a CPU
        that was idle has woken up.
        """
        took_s = self._run()
        if self._is_slow(took_s) and self._now() - self._slow_s > _ASLEEP_S:
            took_s = self._awake_s(took_s)
        insort(self._sorted_s, took_s)
        if len(self._sorted_s) > _REMEMBERED:
            del self._sorted_s[::2]
        return not self._is_slow(took_s)

    def _awake_s(self, took_s: float) -> float:
        """Seconds of the first loop at full speed, or of the last one within a few milliseconds."""
        spent_s = took_s
        while spent_s < _AWAKE_S:
            took_s = self._run()
            if not self._is_slow(took_s):
                return took_s
            spent_s += took_s
        self._slow_s = self._now()
        return took_s

    def _is_slow(self, took_s: float) -> bool:
        return bool(self._sorted_s) and took_s > _SLOWER_AT_MOST * self.full_speed_s

    @property
    def full_speed_s(self) -> float:
        """Seconds that it takes at full speed; it must have been run."""
        return self._sorted_s[len(self._sorted_s) // _TWENTIETH]


def _settle(cpu: int) -> None:
    with suppress(OSError):  # it is not this process's any more
        os.sched_setaffinity(0, {cpu})  # of this thread alone


@dataclass
class SetAside:
    """The time of the rounds that a process has set aside, whichever of its CPUs were slow."""

    seconds: float = 0.0

    @property
    def may_last(self) -> bool:
        """False if that is too large a share of this process's processor time."""
        return self.seconds < _SET_ASIDE_AT_MOST_S + _SHARE_AT_MOST * time.process_time()


class Cpus:
    """The CPUs that compute.

    Args:
        loops: one for each, by its number; or one for that of the calling thread, wherever it is,
            by None.
    """

    def __init__(self, loops: Mapping[int | None, Loop], set_aside: SetAside) -> None:
        self._loops = loops
        self._looks = {cpu: loop.is_fast for cpu, loop in loops.items()}
        self.set_aside = set_aside

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Have a thread on each CPU within the block, where loops do not run in the calling one."""
        with ExitStack() as threads:
            for cpu, loop in self._loops.items():
                if cpu is not None:
                    thread = ThreadPoolExecutor(1, "fwbench", _settle, (cpu,))
                    threads.enter_context(thread)
                    self._looks[cpu] = partial(_look_in, thread, loop)
            yield

    def are_fast(self) -> bool:
        """Run the loops, one after the other; True if all CPUs were at full speed."""
        return min([look() for look in self._looks.values()])

    @property
    def loop_s(self) -> float:
        """Mean seconds of the loops at full speed; they must have been run."""
        return statistics.fmean(loop.full_speed_s for loop in self._loops.values())


def _look_in(thread: Executor, loop: Loop) -> bool:
    """Look in another thread, while this one waits: to change threads takes longer than a loop."""
    return thread.submit(loop.is_fast).result()


#: Shared by all cases: otherwise each set of CPUs would have a budget of its own.
_OF_PROCESS = SetAside()


@cache
def cpus_of_process(*, is_parallel: bool) -> Cpus:
    """The CPUs that compute in this process.

    Args:
        is_parallel: whether other threads than the one that makes the calls do.

    Returns:
        That of the calling thread, wherever it is; or each that it may use, unless these are many.
    """
    cpus = sorted(os.sched_getaffinity(0)) if is_parallel else []
    numbers: list[int | None] = [*cpus] if 0 < len(cpus) <= _CPUS_AT_MOST else [None]
    return Cpus({number: Loop() for number in numbers}, _OF_PROCESS)


class SpeedWatch:
    """Sets rounds aside during which a CPU was slower than at full speed, for a limited time."""

    def __init__(self, clock: Clock, cpus: Cpus) -> None:
        self._clock = clock
        self._cpus = cpus
        self._unseen_s: list[float] = []
        self._pending_s = 0.0
        self._since_s: float | None = None
        self._is_short: bool | None = None
        self._counted = self._fast = self._set_aside = 0
        self._look()  # some time before the first rounds

    def _look(self) -> None:
        self._was_fast = self._cpus.are_fast()
        self._looked_s = self._clock.read()
        self._is_cold = True

    def begin(self) -> None:
        """Look before rounds."""
        self._look()
        if self._since_s is None:
            self._since_s = self._looked_s

    def end(self, rounds: int) -> bool:
        """Look after so many rounds, which are the clock's latest; True if they count."""
        was_fast, before_s, since_s = self._was_fast, self._looked_s, self._since_s
        assert since_s is not None, "rounds end that have not begun"  # noqa: S101
        self._look()
        is_fast = was_fast and self._was_fast
        is_early = self._looked_s - since_s < _SET_ASIDE_AT_MOST_S
        if not is_fast and is_early and self._cpus.set_aside.may_last:
            self._cpus.set_aside.seconds += self._looked_s - before_s
            self._clock.forget(rounds)
            self._set_aside += rounds
            return False
        self._counted += rounds
        self._fast += rounds * is_fast
        return True

    def sift(self, round_s: float, wanted_s: float = math.inf) -> Sequence[float]:
        """The rounds that count; see :meth:`fwbench.measure.nvml.GpuWatch.sift`."""
        if self._is_short is None:
            self._is_short = round_s < _EACH_S
        if self._is_cold and self._is_short:
            self._is_cold = False
            self._looked_s = self._clock.read()
            self._clock.forget(1)
            return ()
        self._unseen_s.append(round_s)
        self._pending_s += round_s
        is_due = self._pending_s >= wanted_s or self._clock.read() - self._looked_s >= _EACH_S
        if self._clock.is_in_stretch or not is_due:
            return ()
        rounds_s, self._unseen_s, self._pending_s = self._unseen_s, [], 0.0
        return rounds_s if self.end(len(rounds_s)) else ()

    def facts(self) -> dict[str, Any]:
        """Speed during the rounds, for the record."""
        return {
            "full_speed": self._fast / self._counted if self._counted else None,
            "slow_rounds": self._set_aside,
            "loop_s": self._cpus.loop_s,
        }
