"""The referee: knows who comes, and gives turns to the contestants of each case or row.

All contestants are ready before the first of them has a turn, so nothing is imported, bound or
verified while another is timed.
"""

import json
import random
import select
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fwbench.turns.contest import CaseVisits, Contestant, Effort, Meeting, place_of_whole
from fwbench.turns.visits import PACKET_BYTES, VARIABLE, address

#: How long a process that has come may take to say for what.
_GREETING_S = 1.0

#: How often sessions are looked after that say nothing.
_POLL_S = 0.2

#: A side that has computed nothing for so long, while another waits for it, waits for what that one
#: holds: a lock, a file, a database. This much processor time is nothing.
_STALLED_S, _NOTHING_S = 10.0, 0.05

#: After so long, and again after as long, it is told what everybody waits for.
LONG_S = 60.0

#: With the operands of up to eight cases a cache holds nothing of any.
_LEAD_IN_S = 3e-3

#: Rounds of turns of a contest at least, and so many before it is asked how well ratios are known,
#: again after each few more.
_AT_LEAST, _ASKED_FROM, _EACH = 5, 12, 4

#: Ratios to the fastest are known well enough where the middle half of them lies within this share;
#: of contestants that are so many times as slow they need not be.
_WITHIN, _FAR = 0.01, 2.0


class ComparedSession(Protocol):
    """A session of a contestant."""

    def fileno(self) -> int:
        """A descriptor that becomes readable when it has something to say, or has ended."""

    def has_ended(self) -> bool:
        """Look after it, without waiting; True once it has ended."""


class Referee:
    """Gives turns until all sessions have ended.

    Args:
        folder: for its socket.
        sides: number of contestants.
        row: whether they hold different cases, those of one row; or else each the same ones.
        used_s: processor time of a side's session so far; None if nobody looks for sides that wait
            for what another holds.
        tell: hears every minute which sides everybody waits for, the case that they have or come
            to, empty if none is known, and for how many seconds. It may raise, to wait no more.
    """

    def __init__(
        self,
        folder: Path,
        sides: int,
        effort: Effort,
        seed: int,
        *,
        row: bool = False,
        used_s: Callable[[int], float] | None = None,
        tell: Callable[[Sequence[int], str, float], object] = lambda *_: None,
    ) -> None:
        #: Of every case that took turns; of a row, under an empty key.
        self.contests: dict[str, CaseVisits] = {}
        #: The cases that any side was to come to, in their order.
        self.announced: dict[str, None] = {}
        #: The cases that a side had not finished when its session ended, in their order.
        self.left: dict[int, list[str]] = {}
        #: The cases that one side held while another waited for it.
        self.stalled: set[str] = set()
        self._path = folder / "turns"
        self._sides = range(sides)
        self._effort = effort
        self._is_row = row
        self._random = random.Random(seed)  # noqa: S311 (no secret)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with address(str(self._path)) as name:
            self._listening.bind(name)
        self._listening.listen()
        self._programmes: dict[socket.socket, int] = {}
        self._coming: list[dict[str, None]] = [{} for _ in self._sides]  # in their order
        self._told: set[int] = set()
        self._waiting: dict[str, dict[int, Contestant]] = {}
        self._begun: set[str] = set()
        self._seats: dict[int, Contestant] = {}
        self._waited_s = dict.fromkeys(self._sides, 0.0)
        self._going: dict[int, ComparedSession] = {}
        self._used_s = used_s
        self._idle: dict[int, tuple[float, float]] = {}  # processor time, and since when
        self._stuck: set[int] = set()
        self._tell = tell
        self._expect("")

    def _expect(self, key: str) -> None:
        """Begin to wait: until a case is over, or until a side comes to one."""
        self._key, self._since_s = key, time.monotonic()
        self._tell_at_s = self._since_s + LONG_S

    def place(self, side: int) -> str:
        """The place of a contestant: what its process must know to take turns."""
        return f"{self._path}:{side}"

    def variables(self, side: int) -> Mapping[str, str]:
        """The environment variables with which a side takes turns."""
        return {VARIABLE: self.place(side)}

    def waits(self, side: int) -> bool:
        """True if a contestant waits for others, or for its turn."""
        seat = self._seats.get(side)
        return seat is not None and not seat.has_turn

    def waited_s(self, side: int) -> float:
        """Seconds for which a contestant has waited, in all that is over."""
        return self._waited_s[side]

    def serve(self, sessions: Sequence[ComparedSession]) -> None:
        """Give turns until each side's session has ended."""
        self._going = dict(enumerate(sessions))
        try:
            self._attend()
            while self._going:
                self._hear()
                while (key := self._next_key(self._going)) is not None:
                    self._begin(key)
        finally:
            for side in self._going:
                self._end(side)
            self._close()

    def ended_at(self, side: int) -> str:
        """The case that a side was in, or came to, when its session ended; empty for none."""
        return next(iter(self.left.get(side, ())), "")

    def _hear(self) -> None:
        """Wait until something has happened, and note it."""
        heard: list[Any] = [self._listening, *self._programmes, *self._going.values()]
        ready, _, _ = select.select(heard, [], [], _POLL_S)
        if ready:
            self._expect("")
        if self._listening in ready:
            self._meet(self._listening.accept()[0])
        for connection in [*self._programmes]:
            if connection in ready:
                self._note(connection)
        self._attend()
        self._look_for_stalled()

    def _look_for_stalled(self) -> None:
        """Find sides that compute nothing while others wait for them."""
        if self._used_s is None or not self._waiting:
            self._idle.clear()
            return
        now_s = time.monotonic()
        for side in self._going.keys() - self._seats.keys() - self._stuck:
            used_s = self._used_s(side)
            before_s, since_s = self._idle.setdefault(side, (used_s, now_s))
            if used_s > before_s + _NOTHING_S:
                self._idle[side] = used_s, now_s
            elif now_s - since_s > _STALLED_S:
                self._stuck.add(side)
                self.stalled |= {key for key in self._waiting if self._is_in(side, key)}

    def _is_in(self, side: int, key: str) -> bool:
        """True if a side has come as far as a case: others have begun none that is still to come.

        One that sleeps in an earlier case holds up those who wait, and says nothing of theirs.
        """
        return self._coming[side].keys().isdisjoint(self._begun - {key})

    def _hear_of(self, side: int) -> None:
        """Expect a side again that has said something."""
        self._idle.pop(side, None)
        self._stuck.discard(side)

    def _attend(self) -> None:
        for side, session in [*self._going.items()]:
            if session.has_ended():
                del self._going[side]
                self._end(side)
        now_s = time.monotonic()
        if self._going and now_s > self._tell_at_s:
            self._tell_at_s = now_s + LONG_S
            holding = [side for side, seat in self._seats.items() if seat.has_turn]
            waited_for = holding or sorted(self._going.keys() - self._seats.keys())
            next_key = next((key for side in waited_for for key in self._coming[side]), "")
            self._tell(waited_for, self._key or next_key, now_s - self._since_s)

    def _meet(self, connection: socket.socket) -> None:
        """Hear what a process has come for; one that does not say so at once is turned away."""
        connection.settimeout(_GREETING_S)
        message = _message(connection)
        connection.settimeout(None)
        match message:
            case ["programme", int(side)]:
                self._programmes[connection] = side
            case ["contest", int(side), str(key), int(calls), int(threads)]:
                self._wait(key, Contestant(side, connection, "", calls, threads))
            case ["whole", int(side), str(key), str(part), int(threads)]:
                self._wait(key, Contestant(side, connection, part, threads=threads))
            case _:
                connection.close()

    def _wait(self, key: str, contestant: Contestant) -> None:
        key = "" if self._is_row else key
        self._hear_of(contestant.side)
        self._seats[contestant.side] = contestant
        self._waiting.setdefault(key, {})[contestant.side] = contestant

    def _note(self, connection: socket.socket) -> None:
        """Note which cases come, and which are over."""
        side = self._programmes[connection]
        self._hear_of(side)
        match _message(connection):
            case ["coming", [*keys]]:
                self._coming[side] |= dict.fromkeys(keys)
                self.announced |= self._coming[side]
            case ["told"]:
                self._told.add(side)
            case ["done", str(key)]:
                self._coming[side].pop(key, None)
                self._leave(key, side)
                if key in self.stalled:  # what it held is free: the others may come to its next
                    self._stuck.clear()
                    self._idle.clear()
            case None:
                del self._programmes[connection]
                connection.close()
                if side not in self._programmes.values():  # workers have programmes of their own
                    self._end(side)

    def _end(self, side: int) -> None:
        """Expect no case of a side any more: its session has ended."""
        self.left.setdefault(side, [*self._coming[side]])
        self._coming[side].clear()
        self._told.add(side)
        if self._is_row:
            self._leave("", side)

    def _leave(self, key: str, side: int) -> None:
        """Let nobody wait for one whose case has ended while it waited."""
        there = self._waiting.get(key, {})
        if left := there.pop(side, None):
            self._rise(left)
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
        is_known = side in self._told
        return side not in self._stuck and (not is_known or key in self._coming[side])

    def _begin(self, key: str) -> None:
        """Begin the contest of those who are there; one who is alone is measured as always."""
        there = self._waiting.pop(key)
        self._begun.add(key)
        if len({contestant.part for contestant in there.values()}) > 1:  # one has fewer parts
            self._waiting[key] = {side: each for side, each in there.items() if not each.part}
            there = {side: each for side, each in there.items() if each.part}
        contestants = [there[side] for side in sorted(there)]
        self._expect(key)
        if len(contestants) == 1:
            self._leave_alone(*contestants)
        elif all(contestant.calls for contestant in contestants):
            meeting = Meeting(key, contestants, self._effort, self._random, self._attend)
            self.contests[key] = meeting.held()
        else:
            self._one_by_one(contestants)
        self._expect("")
        for contestant in contestants:
            self._rise(contestant)

    def _rise(self, contestant: Contestant) -> None:
        """Free the seat of one who waits no longer."""
        contestant.connection.close()
        if self._seats.get(contestant.side) is contestant:
            del self._seats[contestant.side]
        self._waited_s[contestant.side] += contestant.waited_s

    def _leave_alone(self, contestant: Contestant) -> None:
        """Have one measure as always, until it says that it is over; nobody else has a turn."""
        with contestant.turn(), suppress(OSError):
            contestant.tell("alone")
            contestant.heard(self._attend)

    def _one_by_one(self, contestants: list[Contestant]) -> None:
        """Have each do the whole of its case, while the others sleep."""
        self._random.shuffle(contestants)
        for contestant in contestants:
            contestant.tell("begin", 1)
        place = place_of_whole(contestants)
        for contestant in contestants:
            contestant.visit(0, 1, self._attend, place)

    def _close(self) -> None:
        for there in self._waiting.values():
            for contestant in there.values():
                contestant.connection.close()
        for connection in (self._listening, *self._programmes):
            connection.close()


def _message(connection: socket.socket) -> Any:
    """A message that has arrived; None at the end of the connection, or for what is no message."""
    try:
        return json.loads(connection.recv(PACKET_BYTES))
    except (OSError, ValueError):
        return None


def row_effort(max_time_s: float, watch: AbstractContextManager[object]) -> Effort:
    """The effort of a row: until ratios are known, or for so long.

    Args:
        max_time_s: the time of each contestant's visits after which they end.
        watch: entered while visits are made.
    """
    return Effort(
        lambda _, seen: (
            min(len(seen.visits_s), seen.counted) >= _AT_LEAST
            and (seen.used_s >= max_time_s or _are_known(seen))
        ),
        same_case=False,
        lead_in_s=_LEAD_IN_S,
        at_least=_AT_LEAST,
        counted=_AT_LEAST,
        watch=watch,
    )


def _are_known(seen: CaseVisits) -> bool:
    """True if the ratios of those that are nearly as fast as the fastest are known."""
    number = len(seen.visits_s)
    if number < _ASKED_FROM or number % _EACH:
        return False
    logs = np.log(seen.medians_s())
    ratios = logs - logs[np.argmin(np.median(logs, axis=1))]
    near = ratios[np.median(ratios, axis=1) < np.log(_FAR)]
    low, high = np.quantile(near, (0.25, 0.75), axis=1)
    return bool(np.all(high - low < _WITHIN))
