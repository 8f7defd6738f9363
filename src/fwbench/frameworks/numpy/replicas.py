"""NumPy arrays over TCP sockets in a ring: what the wire itself allows, without a framework.

The all-reduce is Baidu's (Gibiansky, "Bringing HPC Techniques to Deep Learning", 2017; Patarasuk
and Yuan, "Bandwidth optimal all-reduce algorithms", 2009): every replica has its part of the sum
after W - 1 steps, and all of it after as many more; it sends 2 (W - 1) / W of its array.
"""

import math
import select
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.member import Member, Place
from fwbench.processes import greeting

_NOTHING = memoryview(b"")

#: Of a broadcast: small beside the arrays that fill a wire, large beside a call of the system.
_PIECE_BYTES = 64 * 1024


class Ring(Member):
    """A replica that sends to the next one and receives from the one before."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._before = self._neighbour(-1), 0
        self._listener = greeting.GuardedListener(place.host, place.key, [self._before])

    @property
    def address(self) -> str:
        """Host and port where the replica before connects."""
        return f"{self._listener.host}:{self._listener.port}"

    def join(self, addresses: Sequence[str]) -> None:
        """Connect to the next replica, accept the one before, and hear from all."""
        # In turn around the ring: a greeting takes both ends.
        if self.place.rank:
            self._listener.wait([self._before])
        host, _, port = addresses[self._neighbour(1)].rpartition(":")
        self._next = greeting.call((host, int(port)), self.place.key, (self.place.rank, 0))
        (self._previous,) = self._listener.wait([self._before])
        for end in (self._next, self._previous):
            end.setblocking(False)
        self.barrier()

    def _neighbour(self, distance: int) -> int:
        return (self.place.rank + distance) % self.place.replicas

    def barrier(self) -> None:
        """A byte around the ring: after W - 1 of them every replica has heard of all others."""
        heard = bytearray(1)
        for _ in range(self.place.replicas - 1):
            self._exchange(memoryview(b"."), memoryview(heard))

    def all_reduce(self, source: NDArray[Any]) -> Callable[[], Any]:
        """Scatter the sums of parts around the ring, then gather them."""
        result = np.empty_like(source)
        parts = np.array_split(result, self.place.replicas)
        return partial(self._reduced, source, result, parts, self._buffer(parts))

    def reduce_scatter(self, source: NDArray[Any]) -> Callable[[], Any]:
        """The first half of an all-reduce, in a copy."""
        sums = np.empty_like(source)
        parts = np.split(sums, self.place.replicas)
        return partial(self._scattered, source, sums, parts, self._buffer(parts))

    def all_gather(self, source: NDArray[Any]) -> Callable[[], Any]:
        """The second half of an all-reduce."""
        result = np.empty(len(source) * self.place.replicas, source.dtype)
        return partial(self._gathered, source, result, np.split(result, self.place.replicas))

    def broadcast(self, source: NDArray[Any]) -> Callable[[int], Any]:
        """Around the ring in pieces: each is sent on while the next one arrives."""
        result = np.empty_like(source)
        pieces = np.array_split(result, max(1, math.ceil(result.nbytes / _PIECE_BYTES)))
        return partial(self._broadcasted, source, result, [_bytes(piece) for piece in pieces])

    def _buffer(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """A buffer as long as the longest part, for one that arrives."""
        return np.empty_like(max(parts, key=len))

    def _reduced(
        self,
        source: NDArray[Any],
        result: NDArray[Any],
        parts: Sequence[NDArray[Any]],
        received: NDArray[Any],
    ) -> NDArray[Any]:
        self._scattered(source, result, parts, received)
        self._pass_on(parts)
        return result

    def _scattered(
        self,
        source: NDArray[Any],
        sums: NDArray[Any],
        parts: Sequence[NDArray[Any]],
        received: NDArray[Any],
    ) -> NDArray[Any]:
        """Add up each part on its way around the ring to its own replica."""
        np.copyto(sums, source)
        for step in range(self.place.replicas - 1):
            part = parts[self._neighbour(-step - 2)]
            other = received[: len(part)]
            self._exchange(_bytes(parts[self._neighbour(-step - 1)]), _bytes(other))
            np.add(part, other, out=part)
        return parts[self.place.rank]

    def _gathered(
        self, source: NDArray[Any], result: NDArray[Any], parts: Sequence[NDArray[Any]]
    ) -> NDArray[Any]:
        np.copyto(parts[self.place.rank], source)
        self._pass_on(parts)
        return result

    def _pass_on(self, parts: Sequence[NDArray[Any]]) -> None:
        """Send this replica's part around the ring, and then each that arrives."""
        for step in range(self.place.replicas - 1):
            arriving = parts[self._neighbour(-step - 1)]
            self._exchange(_bytes(parts[self._neighbour(-step)]), _bytes(arriving))

    def _broadcasted(
        self, source: NDArray[Any], result: NDArray[Any], pieces: Sequence[memoryview], root: int
    ) -> NDArray[Any]:
        if self.place.rank == root:
            self._exchange(_bytes(source), _NOTHING)
            return source
        is_last = self._neighbour(1) == root
        for arrived, arriving in pairwise((_NOTHING, *pieces, _NOTHING)):
            self._exchange(_NOTHING if is_last else arrived, arriving)
        return result

    def _exchange(self, outgoing: memoryview, incoming: memoryview) -> None:
        """Send to the next replica and receive from the one before, both at once.

        Replicas that sent first and received then would wait for each other with full buffers.
        """
        while outgoing or incoming:
            readable, writable, _ = select.select(
                [self._previous] if incoming else (), [self._next] if outgoing else (), ()
            )
            if writable:
                outgoing = outgoing[self._next.send(outgoing) :]
            if readable:
                size_bytes = self._previous.recv_into(incoming)
                if not size_bytes:
                    raise ConnectionError(
                        f"replica {self._neighbour(-1)} has closed its connection"
                    )
                incoming = incoming[size_bytes:]

    def close(self) -> None:
        """Close all sockets."""
        for end in (self._listener, self._next):
            end.close()


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.view(np.uint8).data
