"""NumPy arrays over TCP sockets in a ring: what the wire itself allows, without a framework.

The all-reduce is Baidu's (Gibiansky, "Bringing HPC Techniques to Deep Learning", 2017; Patarasuk
and Yuan, "Bandwidth optimal all-reduce algorithms", 2009): every replica has one part of the sum
after W - 1 steps, and all of it after as many more; it sends 2 (W - 1) / W of its array.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.member import Member, Seat


class Ring(Member):
    """A replica that sends to the next one and receives from the one before."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._listener = socket.create_server((seat.host, 0))

    @property
    def address(self) -> str:
        """Host and port where the replica before connects."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def join(self, addresses: Sequence[str]) -> None:
        """Connect to the next replica, accept the one before, and hear from all."""
        host, _, port = addresses[self._neighbour(1)].rpartition(":")
        self._next = socket.create_connection((host, int(port)))
        self._previous, _ = self._listener.accept()
        for end in (self._next, self._previous):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setblocking(False)
        self.barrier()

    def _neighbour(self, distance: int) -> int:
        return (self.seat.rank + distance) % self.seat.replicas

    def barrier(self) -> None:
        """A byte around the ring: after W - 1 of them every replica has heard of all others."""
        heard = bytearray(1)
        for _ in range(self.seat.replicas - 1):
            self._exchange(memoryview(b"."), memoryview(heard))

    def all_reduce(self, source: NDArray[Any]) -> Callable[[], Any]:
        """Scatter the sums of parts around the ring, then gather them."""
        result = np.empty_like(source)
        parts = np.array_split(result, self.seat.replicas)
        received = np.empty_like(max(parts, key=len))
        return partial(self._reduced, source, result, parts, received)

    def _reduced(
        self,
        source: NDArray[Any],
        result: NDArray[Any],
        parts: Sequence[NDArray[Any]],
        received: NDArray[Any],
    ) -> NDArray[Any]:
        np.copyto(result, source)
        last = self.seat.replicas - 1
        for step in range(last):
            part = parts[self._neighbour(-step - 1)]
            other = received[: len(part)]
            self._exchange(_bytes(parts[self._neighbour(-step)]), _bytes(other))
            np.add(part, other, out=part)
        for step in range(last):
            summed = parts[self._neighbour(1 - step)]
            self._exchange(_bytes(summed), _bytes(parts[self._neighbour(-step)]))
        return result

    def _exchange(self, outgoing: memoryview, incoming: memoryview) -> None:
        """Send to the next replica and receive from the one before, both at once.

        Replicas that sent first and received then would wait for each other with full buffers.

        Raises:
            ConnectionError: a neighbour has gone.
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
        for end in (self._listener, self._next, self._previous):
            end.close()


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.view(np.uint8).data
