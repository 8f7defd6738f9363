"""A contestant's side of turns: it makes the visits that the referee asks for, and sleeps between.

A process takes turns if an environment variable names the referee's socket and the contestant's
number. Every message is one packet:

=======================================  =========================================================
from a contestant                        meaning
=======================================  =========================================================
``["programme", side]``                  a session of this contestant has begun; the connection
                                         stays until its end
``["coming", keys]``                     these cases will come, and others that are still to be told
``["told"]``                             no others will
``["done", key]``                        one of them is over, wherever it was measured
``["contest", side, key, calls,``        it is ready to make rounds of so many calls, with so many
``threads]``                             threads that compute (0: not known)
``["whole", side, key, part, threads]``  it is ready to be measured as a whole, or for a part that
                                         is not to be disturbed, in a single visit
seconds of each round, as doubles        the visit is over; in a row 1 or 0 comes before them:
                                         whether it counts for its time
=======================================  =========================================================

=======================================  =========================================================
from the referee                         meaning
=======================================  =========================================================
``["begin", calls]``                     rounds have so many calls, on all sides
``["begin", calls, true]``               the others have other cases, those of a row, and each calls
                                         of its own
``["alone"]``                            no other contestant is there: there are no turns, and no
                                         other has one until the connection is closed
three numbers and a bool                 make a visit of so many untimed rounds and then so many
                                         timed ones, on this CPU, other threads kept off it or not
=======================================  =========================================================

The contest is over when the connection is closed, by either side.
"""

import json
import os
import socket
import struct
import threading
from array import array
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

#: The environment variable with the referee's socket and the number of this contestant.
VARIABLE = "FWBENCH_TURNS"

#: A turn: untimed rounds, rounds, the CPU for their calls (a negative one for any), and whether the
#: other threads are kept off it.
TURN_FORMAT = struct.Struct("!IIi?")

#: The longest packet, and how many node ids are put into one.
PACKET_BYTES = 2**17
_KEYS = 50


@dataclass
class Turn:
    """The visit that a contestant is to make now."""

    #: Untimed rounds, which find the caches as the other contestants have left them.
    lead_in: int
    rounds: int
    #: Seconds of a call in each of the rounds, to be filled in.
    rounds_s: list[float] = field(default_factory=list)
    #: Whether they count for the time that is stated.
    counts: bool = True


class Seat:
    """A place in the contest of one case."""

    def __init__(self, connection: socket.socket, calls: int, *, is_in_row: bool = False) -> None:
        self._connection = connection
        #: In each round.
        self.calls = calls
        #: Whether the others have other cases, so that times are stated, and not ratios alone.
        self.is_in_row = is_in_row

    def turns(self) -> Generator[Turn]:
        """Each turn, when it has come; its visit is over when the next one is asked for.

        To be closed, so that threads get their CPUs back.
        """
        usual: dict[int, set[int]] = {}
        try:
            while packet := self._connection.recv(TURN_FORMAT.size):
                lead_in, rounds, cpu, is_apart = TURN_FORMAT.unpack(packet)
                if cpu >= 0 and not usual:
                    usual = _place(cpu, is_apart=is_apart)
                turn = Turn(lead_in, rounds)
                yield turn
                counts = [turn.counts] if self.is_in_row else []
                self._connection.send(array("d", [*counts, *turn.rounds_s]).tobytes())
        except OSError:  # the referee has gone
            pass
        finally:
            for thread, cpus in usual.items():
                with suppress(OSError):  # it has ended
                    os.sched_setaffinity(thread, cpus)


def _place(cpu: int, *, is_apart: bool) -> dict[int, set[int]]:
    """Keep this thread on a CPU, and the others of this process off it, if there are more.

    A thread that waits for another is a third as fast on its CPU as beside it, and which of the two
    it is would be chance on either side.

    Args:
        is_apart: whether the others are kept off it; several that compute would share what is left.

    Returns:
        The CPUs that each thread could use before.
    """
    own, usual = threading.get_native_id(), {}
    every = [int(entry.name) for entry in os.scandir("/proc/self/task")]
    for thread in every if is_apart else [own]:
        with suppress(OSError):  # it has ended
            cpus = usual[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {cpu} if thread == own else cpus - {cpu} or cpus)
    return usual


def are_taken() -> bool:
    """True if this process takes turns."""
    return bool(_seat_of_process())


def _seat_of_process() -> str:
    """The place of this process; its session's where a test has emptied the environment."""
    return os.environ.get(VARIABLE) or Programme.place


@contextmanager
def seated(place: str) -> Iterator[None]:
    """Have this process take turns at a place within the block; as before if that is empty."""
    before = os.environ.get(VARIABLE)
    if place:
        os.environ[VARIABLE] = place
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif place:
            del os.environ[VARIABLE]


@contextmanager
def address(path: str) -> Iterator[str]:
    """A name for a socket's path, which itself may be too long for one (unix(7): 108 bytes)."""
    folder, _, name = path.rpartition("/")
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _connected(kind: str, *values: Any) -> socket.socket | None:
    """A connection to the referee that has said what it is for; None if there is no referee."""
    path, _, side = _seat_of_process().rpartition(":")
    if not path:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with address(path) as name:
            connection.connect(name)
        connection.send(json.dumps([kind, int(side), *values]).encode())
    except OSError:  # it has gone, and what it has started ends now
        connection.close()
        return None
    return connection


@contextmanager
def contest(key: str, calls: int, threads: int = 0) -> Iterator[Seat | None]:
    """Take part in the contest of a case; None where it is measured alone, within the block.

    Args:
        calls: that make a round long enough here.
        threads: that compute; 0 where that is not known.
    """
    with _joined("contest", key, calls, threads) as begun:
        yield begun


@contextmanager
def whole(key: str, part: str = "", threads: int = 0) -> Iterator[None]:
    """Do within the block what cannot take turns, all or a part, while the others sleep.

    Args:
        threads: that compute; 0 where that is not known, or where any CPU will do.
    """
    with _joined("whole", key, part, threads) as begun:
        if begun is None:
            yield
            return
        with closing(begun.turns()) as turns:
            next(turns, None)
            yield
            next(turns, None)


@contextmanager
def _joined(*offer: Any) -> Iterator[Seat | None]:
    connection = _connected(*offer)
    if connection is None:
        yield None
        return
    with connection:
        kind, *said = json.loads(connection.recv(PACKET_BYTES) or '["alone"]')
        yield Seat(connection, said[0], is_in_row=said[1:] == [True]) if kind == "begin" else None


class Programme:
    """The cases of a session, as it tells the referee which come and which are over."""

    #: Of the session of this process; empty where none takes turns.
    place = ""

    def __init__(self, keys: Sequence[str]) -> None:
        Programme.place = _seat_of_process()
        self._connection = _connected("programme")
        for first in range(0, len(keys), _KEYS):
            self._say("coming", keys[first : first + _KEYS])
        self._say("told")

    def end(self) -> None:
        """Forget the place: what follows in this process takes no turns."""
        Programme.place = ""

    def done(self, key: str) -> None:
        """Say that a case is over, measured or not."""
        self._say("done", key)

    def _say(self, *message: Any) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.send(json.dumps(message).encode())
