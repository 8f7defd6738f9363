"""A contest: visits of the contestants of one case or of one row, by turns.

In every round of turns each makes one visit, in an order that is drawn and balanced (the rows of a
random cyclic Latin square). A visit counts unless threads of another contestant were running
meanwhile, by their processor time alone.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import socket
import statistics
import struct
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.machine import threads_run
from fwbench.turns.visits import PACKET_BYTES, TURN_FORMAT

#: A visit is as long as this, or one round: shorter ones measure how a process wakes up, longer
#: ones do not meet the same machine as their neighbours.
_VISIT_S = 2e-3

#: Rounds that tell how long one is, unless one takes longer than this.
_TRIED, _TRIED_S = 3, 5e-3

#: A convolution of 3 ms took 1.2 times as long without a call before it, which finds the caches as
#: others have left them. To rounds of this length that is no matter.
_LONG_S = 20e-3

#: What another contestant may run while one makes its visit: this share of it, and this long,
#: which it takes to go to sleep.
_OTHERS, _OTHERS_S = 0.03, 60e-6

#: Threads of one processor use at most this share of the time.
_ONE_CPU = 1.1

#: What it takes at most until threads that are told to stop have.
_HALTING_S = 5e-3

#: How long each contestant's visits may take together: another launch tells more than longer ones.
_MOST_S = 0.5

#: And how long a contest may take in all, where visits do not count; and where they do not count
#: for the time of a contestant, which is longer than its CPU is slow as a rule.
_LONGEST_S, _SLOW_LONGEST_S = 2.0, 3.0

#: How often somebody looks after the contestants while a visit goes on.
_POLL_S = 0.2

Floats = NDArray[np.float64]


class CallPlace(NamedTuple):
    """Where calls are made."""

    #: For the thread that makes them; a negative one for any.
    cpu: int
    #: Whether the other threads of its process are kept off that CPU.
    is_apart: bool


ANYWHERE = CallPlace(-1, False)


@dataclass
class Contestant:
    """One side's process that holds a case."""

    side: int
    connection: socket.socket
    part: str = ""
    calls: int = 0
    threads: int = 0
    #: Whether it is its turn; otherwise it waits.
    has_turn: bool = False
    #: Whether it ended instead of making a visit.
    has_gone: bool = False
    #: Whether the others have other cases, so that it says which of its visits count for its time,
    #: and how many have.
    is_in_row: bool = False
    counted: int = 0
    #: When it came, and the seconds of its turns since.
    came_s: float = field(default_factory=time.monotonic)
    turns_s: float = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds since it came in which it had no turn; known between turns."""
        return time.monotonic() - self.came_s - self.turns_s

    @property
    def pid(self) -> int:
        """The process, by the kernel."""
        size = struct.calcsize("3i")
        credentials = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", credentials)[0])

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let it have the turn within the block."""
        began_s, self.has_turn = time.monotonic(), True
        try:
            yield
        finally:
            self.has_turn = False
            self.turns_s += time.monotonic() - began_s

    def tell(self, *message: Any) -> None:
        """Send it a message, unless it has gone."""
        with suppress(OSError):
            self.connection.send(json.dumps(message).encode())

    def visit(
        self, lead_in: int, rounds: int, attend: Callable[[], object], place: CallPlace = ANYWHERE
    ) -> Sequence[float]:
        """Have a visit made; seconds of a call in each round, none of one that has gone."""
        said: Sequence[float] = ()
        with self.turn(), suppress(OSError):
            self.connection.send(TURN_FORMAT.pack(lead_in, rounds, *place))
            said = array("d", self.heard(attend))
        self.has_gone = not said
        if not self.is_in_row:
            return said
        self.counted += bool(said and said[0])
        return said[1:]

    def heard(self, attend: Callable[[], object]) -> bytes:
        """Wait for a packet; empty once the connection is closed.

        Raises:
            OSError: it has broken.
        """
        self.connection.settimeout(_POLL_S)
        while True:
            try:
                return self.connection.recv(PACKET_BYTES)
            except TimeoutError:
                attend()


@dataclass
class CaseVisits:
    """The visits of a case."""

    #: Of each round of turns that counts, seconds of a call in each round of each contestant's
    #: visit.
    visits_s: list[Sequence[Sequence[float]]] = field(default_factory=list)
    #: Of these contestants.
    sides: Sequence[int] = ()
    #: Rounds of turns in which another contestant was running.
    left_out: int = 0
    #: Seconds that a contestant's visits have taken, on average.
    used_s: float = 0.0
    #: How many of its visits count for the time of each, at least.
    counted: int = 0

    def medians_s(self) -> Floats:
        """The median round of each visit, in seconds of a call; (contestants, visits)."""
        medians = [[statistics.median(rounds) for rounds in row] for row in self.visits_s]
        return np.array(medians, dtype=float).reshape(-1, len(self.sides)).T

    def ratios(self, quantile: float = 0.5, at_least: int = 1) -> Floats:
        """Logarithms of the ratios of adjacent visits, contender to base; of equal calls.

        Args:
            quantile: of the rounds of a visit.
            at_least: how many rounds that takes; shorter visits are taken several at a time.
        """
        times_s = np.swapaxes(np.asarray(self.visits_s, dtype=float), 0, 1)
        _, visits, rounds = times_s.shape
        group = min(visits, math.ceil(at_least / rounds))
        whole = visits // group * group
        groups = times_s[:, :whole].reshape(len(times_s), -1, group * rounds)
        base, contender = np.log(np.quantile(groups, quantile, axis=-1))
        ratios: Floats = contender - base
        return ratios


#: Tells by what was seen of a case whether it is enough.
Enough = Callable[[str, CaseVisits], bool]


@dataclass(frozen=True)
class Effort:
    """Effort of a contest."""

    #: Asked after each round of turns.
    enough: Enough
    #: Whether all hold the same case. Then their rounds are of as many calls, so that a round's
    #: fixed cost is divided alike.
    same_case: bool = True
    #: How long calls go on before those that are timed: what caches are filled with, and threads
    #: woken. A round at least, unless it takes much longer.
    lead_in_s: float = 300e-6
    #: Rounds of turns that there is always time for, if they count.
    at_least: int = 0
    #: Visits of each that are to count for its time, if there is time for them.
    counted: int = 0
    #: Entered while visits are made.
    watch: AbstractContextManager[object] = field(default_factory=nullcontext)


class Meeting:
    """Has contestants make visits by turns until that is enough.

    If one of them goes, the others begin again: they have cases of their own.

    Args:
        attend: looks after all contestants, several times a second.
    """

    def __init__(
        self,
        key: str,
        contestants: Sequence[Contestant],
        effort: Effort,
        draw: random.Random,
        attend: Callable[[], object],
    ) -> None:
        self._key = key
        self._contestants = contestants
        self._effort = effort
        self._random = draw
        self._attend = attend
        self._threads = [_Threads(contestant.pid) for contestant in contestants]
        most = max(contestant.calls for contestant in contestants)
        for contestant in contestants:
            contestant.calls = most if effort.same_case else contestant.calls
            contestant.is_in_row = not effort.same_case
            contestant.tell("begin", contestant.calls, *[True] * contestant.is_in_row)

    def held(self) -> CaseVisits:
        """The visits, once they are over."""
        while True:
            try:
                with self._effort.watch:
                    seen = self._seen()
            finally:
                for process in self._threads:
                    process.go_on()
            left = [contestant for contestant in self._contestants if not contestant.has_gone]
            if not left or len(left) == len(self._contestants):
                return seen
            self._contestants = left
            self._threads = [_Threads(contestant.pid) for contestant in left]

    def _seen(self) -> CaseVisits:
        """The visits until they are enough, or one has gone."""
        seen = CaseVisits(sides=[contestant.side for contestant in self._contestants])
        tried = self._tried()
        if tried is None:
            return seen
        place = self._place(tried)
        visits = self._visits(tried)
        usual_s = _SLOW_LONGEST_S if self._effort.counted else _LONGEST_S
        longest_s = max(usual_s, 2 * self._effort.at_least * tried.used_s)
        ends_s = time.perf_counter() + longest_s
        for order in self._orders():
            row = self._row(place, halts=tried.is_disturbed or seen.left_out > 0)
            if not row.make(order, visits):
                break
            if not row.is_disturbed:
                seen.visits_s.append(row.visits_s)
            elif not seen.left_out:  # from now on those whose threads run are halted
                seen.visits_s.clear()
            seen.left_out += row.is_disturbed
            seen.used_s += row.used_s / len(self._contestants)
            seen.counted = min(contestant.counted for contestant in self._contestants)
            enough = len(seen.visits_s) >= self._effort.at_least
            enough = enough and seen.counted >= self._effort.counted
            has_lasted = enough and seen.used_s >= _MOST_S
            is_over = has_lasted or time.perf_counter() >= ends_s
            if is_over or self._effort.enough(self._key, seen):
                break
        return seen

    def _place(self, tried: _Row) -> CallPlace:
        """The place for calls: anywhere if several threads compute.

        Two threads of MXNet that wait for each other at barriers took 8 ms on one CPU, and 0.03 ms
        on two.
        """
        threads = {contestant.threads for contestant in self._contestants}
        if tried.is_parallel and threads != {1}:
            return ANYWHERE
        return CallPlace(_common_cpu(self._contestants), max(threads) <= 1)

    def _row(self, place: CallPlace = ANYWHERE, *, halts: bool = False) -> _Row:
        return _Row(self._contestants, self._threads, self._attend, place, halts=halts)

    def _tried(self) -> _Row | None:
        """Visits that tell how long rounds are, of a few rounds where these are short."""
        number = len(self._contestants)
        for lead_in, rounds in ((0, 1), (1, _TRIED)):
            row = self._row()
            if not row.make(range(number), [(lead_in, rounds)] * number):
                return None
            if row.used_s > _TRIED_S * number / 2:
                break
        return row

    def _visits(self, tried: _Row) -> Sequence[tuple[int, int]]:
        """The untimed rounds of each one's visits, and the timed ones: as many of equal calls."""
        medians_s = map(statistics.median, tried.visits_s)
        both = zip(self._contestants, medians_s, strict=True)
        rounds_s = [contestant.calls * median_s for contestant, median_s in both]
        if self._effort.same_case:
            rounds_s = [max(rounds_s)] * len(rounds_s)
        return [
            (
                math.ceil(self._effort.lead_in_s / round_s) if round_s < _LONG_S else 0,
                max(1, round(_VISIT_S / round_s)),
            )
            for round_s in rounds_s
        ]

    def _orders(self) -> Iterator[Sequence[int]]:
        """Orders of contestants: the rows of random cyclic Latin squares, in random order."""
        number = len(self._contestants)
        while True:
            first = self._random.sample(range(number), number)
            for start in self._random.sample(range(number), number):
                yield [*first[start:], *first[:start]]


class _Row:
    """One visit of each contestant.

    Args:
        place: for the threads that make the visits.
        halts: whether processes whose threads run on after a visit are halted until their next.

    Attributes:
        is_disturbed: whether another contestant was running in one of them.
        is_parallel: whether one of them kept more than a processor busy.
    """

    def __init__(
        self,
        contestants: Sequence[Contestant],
        threads: Sequence[_Threads],
        attend: Callable[[], object],
        place: CallPlace,
        *,
        halts: bool = False,
    ) -> None:
        self._contestants = contestants
        self._threads = threads
        self._attend = attend
        self._place = place
        self._halts = halts
        self.is_disturbed = self.is_parallel = False
        self.used_s = 0.0
        self.visits_s: list[Sequence[float]] = [()] * len(contestants)

    def make(self, order: Sequence[int], visits: Sequence[tuple[int, int]]) -> bool:
        """Have the visits made, of so many untimed and timed rounds; False if one has gone."""
        for place in order:
            others = [other for number, other in enumerate(self._threads) if number != place]
            own = self._threads[place]
            own.go_on()
            others_s, own_s = sum(process.used_s() for process in others), own.used_s()
            start_s = time.perf_counter()
            rounds_s = self._contestants[place].visit(*visits[place], self._attend, self._place)
            took_s = time.perf_counter() - start_s
            if not rounds_s:
                return False
            others_s = sum(process.used_s() for process in others) - others_s
            self.is_disturbed |= others_s > _OTHERS * took_s + _OTHERS_S
            self.is_parallel |= own.used_s() - own_s > _ONE_CPU * took_s + _OTHERS_S
            self.used_s += took_s
            self.visits_s[place] = rounds_s
            if self._halts:
                own.halt()
        return True


class _Threads:
    """The threads of another process: their processor time, and whether one of them runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_halted = False
        self._process = Path(f"/proc/{pid}")
        # MAKE_PROCESS_CPUCLOCK of <linux/posix-timers.h>: what clock_getcpuclockid(3) returns.
        self._clock = (~pid << 3) | 2

    def used_s(self) -> float:
        """Seconds so far, of all together; 0 where they cannot be read.

        Of a thread that is running on another CPU the kernel knows them to a tick, milliseconds.
        """
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return 0.0

    def halt(self) -> None:
        """Stop the process if a thread of it runs, as those do that wait actively for more work.

        Those of ONNX Runtime do so for 30 ms; when the process goes on, so do they, and it finds
        them as in calls that follow one another.
        """
        if self._is_halted or not threads_run(self._process):
            return
        self._is_halted = True
        self._signal(signal.SIGSTOP)
        until_s = time.perf_counter() + _HALTING_S
        while threads_run(self._process) and time.perf_counter() < until_s:
            pass  # and the kernel has counted their time

    def go_on(self) -> None:
        if self._is_halted:
            self._is_halted = False
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)


def place_of_whole(contestants: Sequence[Contestant]) -> CallPlace:
    """The place for what cannot take turns: one CPU for those in which a single thread computes.

    Its neighbours share its cache: PyTorch's ReLU of a megabyte took 33 us on one CPU and 42 on the
    other for minutes, at the same speed of a loop without memory.
    """
    if any(contestant.threads != 1 for contestant in contestants):
        return ANYWHERE
    return CallPlace(_common_cpu(contestants), True)


def _common_cpu(contestants: Sequence[Contestant]) -> int:
    """A CPU that all may use; -1 if there is none.

    On machines with several guests CPUs are not equally fast at any moment, so two processes that
    stay on different ones differ for seconds.
    """
    with suppress(OSError):  # one has gone
        common = set.intersection(*(os.sched_getaffinity(each.pid) for each in contestants))
        return max(common, default=-1)
    return -1
