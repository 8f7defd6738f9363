"""The referee: gives turns to the contestants of each case, and keeps what their visits took.

All contestants of a case are ready before the first of them has a turn, so nothing is imported,
bound or verified while another is timed. In every round of turns each makes one visit, in an order
that is drawn and balanced (the rows of a random cyclic Latin square). A visit counts unless threads
of another contestant were running meanwhile, by their processor time alone.
"""

from __future__ import annotations

import json
import math
import os
import random
import select
import socket
import statistics
import struct
import time
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fwbench.turns.visits import PACKET_BYTES, TURN_FORMAT, VARIABLE, address

#: A visit is as long as this, or one round: shorter ones measure how a process wakes up, longer
#: ones do not meet the same machine as their neighbours.
_VISIT_S = 2e-3

#: Where threads spin, which each visit has to wait for, it is longer.
_LONG_VISIT_S = 5e-3

#: Rounds that tell how long one is.
_TRIED = 3

#: Before a visit the caches are filled for as long as this, by a round at least: a convolution of
#: 3 ms took 1.2 times as long without. What rounds find there that take much longer is no matter.
_LEAD_IN_S, _LONG_S = 300e-6, 20e-3

#: What another contestant may run while one makes its visit: this share of it, and this long,
#: which it takes to go to sleep.
_OTHERS, _OTHERS_S = 0.03, 60e-6

#: Threads of one processor use at most this share of the time.
_ONE_CPU = 1.1

#: How long a turn waits for threads of other contestants that spin, and how often it looks.
_SPINNING_AT_MOST_S, _LOOK_S = 20e-3, 200e-6

#: How long each contestant's visits may take together: another launch tells more than longer ones.
_MOST_S = 0.5

#: And how long a contest may take in all, where each visit waits for threads that spin.
_LONGEST_S = 2.0

#: How long a process that has come may take to say for what.
_GREETING_S = 1.0

Floats = NDArray[np.float64]


class Waitable(Protocol):
    """A process of which the end can be waited for."""

    def fileno(self) -> int:
        """A descriptor that becomes readable when it has ended."""


@dataclass(frozen=True)
class Contestant:
    """One side's process that holds a case."""

    side: int
    connection: socket.socket
    part: str = ""
    calls: int = 0
    fixed: bool = False

    @property
    def pid(self) -> int:
        """The process, by the kernel."""
        size = struct.calcsize("3i")
        credentials = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", credentials)[0])

    def tell(self, *message: Any) -> None:
        """Send it a message, unless it has gone."""
        with suppress(OSError):
            self.connection.send(json.dumps(message).encode())


@dataclass
class CaseVisits:
    """The visits of a case.

    Attributes:
        visits_s: of each round of turns that counts, seconds of a call in each round of each
            contestant's visit.
        left_out: rounds of turns in which another contestant was running.
    """

    visits_s: list[Sequence[Sequence[float]]] = field(default_factory=list)
    left_out: int = 0
    used_s: float = 0.0

    def ratios(self, quantile: float = 0.5, at_least: int = 1) -> Floats:
        """Logarithms of the ratios of adjacent visits, contender to base.

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


class Referee:
    """Gives turns until all sessions have ended.

    Args:
        folder: for its socket.
        sides: number of contestants.

    Attributes:
        contests: of every case that took turns.
    """

    def __init__(self, folder: Path, sides: int, enough: Enough, seed: int) -> None:
        self.contests: dict[str, CaseVisits] = {}
        self._path = folder / "turns"
        self._sides = range(sides)
        self._enough = enough
        self._random = random.Random(seed)  # noqa: S311 (no secret)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with address(str(self._path)) as name:
            self._listening.bind(name)
        self._listening.listen()
        self._programmes: dict[socket.socket, int] = {}
        self._coming: list[set[str]] = [set() for _ in self._sides]
        self._told: set[int] = set()
        self._waiting: dict[str, dict[int, Contestant]] = {}

    def variables(self, side: int) -> Mapping[str, str]:
        """The environment variables with which a side takes turns."""
        return {VARIABLE: f"{self._path}:{side}"}

    def serve(self, sessions: Sequence[Waitable]) -> None:
        """Give turns until each side's session has ended."""
        going = dict(enumerate(sessions))
        try:
            while going:
                self._attend(going)
                while key := self._next_key(going):
                    self._begin(key)
        finally:
            self._close()

    def _attend(self, going: dict[int, Waitable]) -> None:
        """Wait until something has happened, and note it."""
        ready, _, _ = select.select([self._listening, *self._programmes, *going.values()], [], [])
        if self._listening in ready:
            self._meet(self._listening.accept()[0])
        for connection in [*self._programmes]:
            if connection in ready:
                self._note(connection)
        for side, session in [*going.items()]:
            if session in ready:
                del going[side]
                self._end(side)

    def _meet(self, connection: socket.socket) -> None:
        """Hear what a process has come for; one that does not say so at once is turned away."""
        connection.settimeout(_GREETING_S)
        message = _message(connection)
        connection.settimeout(None)
        match message:
            case ["programme", int(side)]:
                self._programmes[connection] = side
            case ["contest", int(side), str(key), int(calls), bool(fixed)]:
                self._wait(key, Contestant(side, connection, "", calls, fixed))
            case ["whole", int(side), str(key), str(part)]:
                self._wait(key, Contestant(side, connection, part))
            case _:
                connection.close()

    def _wait(self, key: str, contestant: Contestant) -> None:
        self._waiting.setdefault(key, {})[contestant.side] = contestant

    def _note(self, connection: socket.socket) -> None:
        """Note which cases come, and which are over."""
        side = self._programmes[connection]
        match _message(connection):
            case ["coming", [*keys]]:
                self._coming[side] |= {*keys}
            case ["told"]:
                self._told.add(side)
            case ["done", str(key)]:
                self._coming[side].discard(key)
                self._leave(key, side)
            case None:
                del self._programmes[connection]
                connection.close()
                self._end(side)

    def _end(self, side: int) -> None:
        """Expect no case of a side any more: its session has ended."""
        self._coming[side].clear()
        self._told.add(side)

    def _leave(self, key: str, side: int) -> None:
        """Let nobody wait for one whose case has ended while it waited."""
        there = self._waiting.get(key, {})
        if left := there.pop(side, None):
            left.connection.close()
        if not there:
            self._waiting.pop(key, None)

    def _next_key(self, going: Collection[int]) -> str | None:
        """A case that nobody else will come to; None while some may."""
        for key, there in self._waiting.items():
            if not any(self._may_come(side, key) for side in self._sides if side not in there):
                return key
        # Where sides have their cases in different orders each waits for the other.
        are_waiting = {side for there in self._waiting.values() for side in there}
        return next(iter(self._waiting)) if going and are_waiting >= {*going} else None

    def _may_come(self, side: int, key: str) -> bool:
        return side not in self._told or key in self._coming[side]

    def _begin(self, key: str) -> None:
        """Begin the contest of those who are there; one who is alone is measured as always."""
        there = self._waiting.pop(key)
        if len({contestant.part for contestant in there.values()}) > 1:  # one has fewer parts
            self._waiting[key] = {side: each for side, each in there.items() if not each.part}
            there = {side: each for side, each in there.items() if each.part}
        contestants = [there[side] for side in sorted(there)]
        if len(there) < len(self._sides):
            for contestant in contestants:
                contestant.tell("alone")
        elif all(contestant.calls for contestant in contestants):
            self.contests[key] = self._contest(key, contestants)
        else:
            self._one_by_one(contestants)
        for contestant in contestants:
            contestant.connection.close()

    def _one_by_one(self, contestants: list[Contestant]) -> None:
        """Have each do the whole of its case, while the others sleep."""
        self._random.shuffle(contestants)
        for contestant in contestants:
            contestant.tell("begin", 1)
        for contestant in contestants:
            _visit(contestant, 0, 1)

    def _contest(self, key: str, contestants: list[Contestant]) -> CaseVisits:
        """Have all make visits by turns until that is enough, or one has gone."""
        contest = CaseVisits()
        calls = max(contestant.calls for contestant in contestants)
        for contestant in contestants:
            contestant.tell("begin", calls)
        threads = [_Threads(contestant.pid) for contestant in contestants]
        tried = self._tried(contestants, threads)
        if tried is None:
            return contest
        is_free = tried.is_parallel and not all(contestant.fixed for contestant in contestants)
        cpu = -1 if is_free else _common_cpu(contestants)
        round_s = calls * max(map(statistics.median, tried.visits_s))
        visit, ends_s = _visit_of(_VISIT_S, round_s), time.perf_counter() + _LONGEST_S
        for order in self._orders(len(contestants)):
            row = _Row(contestants, threads, cpu, waits=contest.left_out > 0)
            if not row.make(order, *visit):
                break
            if not row.is_disturbed:
                contest.visits_s.append(row.visits_s)
            elif not contest.left_out:  # from now on each visit waits for threads that spin
                visit = _visit_of(_LONG_VISIT_S, round_s)
                contest.visits_s.clear()
            contest.left_out += row.is_disturbed
            contest.used_s += row.used_s / len(contestants)
            is_over = contest.used_s >= _MOST_S or time.perf_counter() >= ends_s
            if is_over or self._enough(key, contest):
                break
        return contest

    def _tried(self, contestants: Sequence[Contestant], threads: Sequence[_Threads]) -> _Row | None:
        """Visits that tell how long rounds are, of a few rounds where these are short."""
        everybody = range(len(contestants))
        for lead_in, rounds in ((0, 1), (1, _TRIED)):
            row = _Row(contestants, threads)
            if not row.make(everybody, lead_in, rounds):
                return None
            if row.used_s > _LONG_VISIT_S:
                break
        return row

    def _orders(self, number: int) -> Iterator[Sequence[int]]:
        """Orders of contestants: the rows of random cyclic Latin squares, in random order."""
        while True:
            first = self._random.sample(range(number), number)
            for start in self._random.sample(range(number), number):
                yield [*first[start:], *first[:start]]

    def _close(self) -> None:
        for there in self._waiting.values():
            for contestant in there.values():
                contestant.connection.close()
        for connection in (self._listening, *self._programmes):
            connection.close()


class _Row:
    """One visit of each contestant.

    Args:
        cpu: for the threads that make the visits; a negative one for any.
        waits: whether to wait for threads that spin before each visit.

    Attributes:
        is_disturbed: whether another contestant was running in one of them.
        is_parallel: whether one of them kept more than a processor busy.
    """

    def __init__(
        self,
        contestants: Sequence[Contestant],
        threads: Sequence[_Threads],
        cpu: int = -1,
        *,
        waits: bool = False,
    ) -> None:
        self._contestants = contestants
        self._threads = threads
        self._cpu = cpu
        self._waits = waits
        self.is_disturbed = self.is_parallel = False
        self.used_s = 0.0
        self.visits_s: list[Sequence[float]] = [()] * len(contestants)

    def make(self, order: Sequence[int], lead_in: int, rounds: int) -> bool:
        """Have the visits made; returns False if a contestant has gone."""
        for place in order:
            others = [other for number, other in enumerate(self._threads) if number != place]
            if self._waits:
                for process in others:
                    process.wait_until_still()
            own = self._threads[place]
            others_s, own_s = sum(process.used_s() for process in others), own.used_s()
            start_s = time.perf_counter()
            rounds_s = _visit(self._contestants[place], lead_in, rounds, self._cpu)
            took_s = time.perf_counter() - start_s
            if not rounds_s:
                return False
            others_s = sum(process.used_s() for process in others) - others_s
            self.is_disturbed |= others_s > _OTHERS * took_s + _OTHERS_S
            self.is_parallel |= own.used_s() - own_s > _ONE_CPU * took_s + _OTHERS_S
            self.used_s += took_s
            self.visits_s[place] = rounds_s
        return True


class _Threads:
    """The threads of another process: their processor time, and whether one of them runs."""

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
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

    def wait_until_still(self) -> None:
        """Wait until none runs, or for so long at most."""
        until_s = time.perf_counter() + _SPINNING_AT_MOST_S
        while time.perf_counter() < until_s and self._are_running():
            time.sleep(_LOOK_S)

    def _are_running(self) -> bool:
        with suppress(OSError):  # the process has ended
            for thread in os.scandir(self._folder):
                with suppress(OSError):  # this one has
                    stat = Path(thread.path, "stat").read_bytes()
                    if stat[stat.rindex(b")") + 2 :].startswith(b"R"):
                        return True
        return False


def _visit_of(seconds: float, round_s: float) -> tuple[int, int]:
    """The untimed rounds of a visit, and the timed ones."""
    lead_in = math.ceil(_LEAD_IN_S / round_s) if round_s < _LONG_S else 0
    return lead_in, max(1, round(seconds / round_s))


def _common_cpu(contestants: Sequence[Contestant]) -> int:
    """A CPU that all may use; -1 if there is none.

    On machines with several guests CPUs are not equally fast at any moment, so two processes that
    stay on different ones differ for seconds.
    """
    with suppress(OSError):  # one has gone
        common = set.intersection(*(os.sched_getaffinity(each.pid) for each in contestants))
        return max(common, default=-1)
    return -1


def _visit(contestant: Contestant, lead_in: int, rounds: int, cpu: int = -1) -> Sequence[float]:
    """Have a visit made; seconds of a call in each round, none of a contestant that has gone."""
    with suppress(OSError):
        contestant.connection.send(TURN_FORMAT.pack(lead_in, rounds, cpu))
        return array("d", contestant.connection.recv(PACKET_BYTES))
    return ()


def _message(connection: socket.socket) -> Any:
    """A message that has arrived; None at the end of the connection, or for what is no message."""
    try:
        return json.loads(connection.recv(PACKET_BYTES))
    except (OSError, ValueError):
        return None
