"""Messages between the parent and a worker: JSON, so that no value on one side breaks the other.

What JSON cannot hold is replaced as pytest-benchmark replaces it in its files; tuples arrive as
lists. Each message begins with a mark: a test may write to any descriptor of its process, and what
it writes there must not be taken for the length of a message that never comes.
"""

import json
import socket
import struct
from collections.abc import Collection, Sequence
from multiprocessing.connection import wait
from typing import Any

from fwbench.errors import IsolationError
from fwbench.jsontext import dumps

_MARK = b"\xf5fwb"  # no text begins like this
_HEADER = struct.Struct(f"!{len(_MARK)}sQ")  # mark, and length of the JSON text in bytes


#: The operating system counts no further.
_LONGEST_S = 1e9


class Channel:
    """One end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, kind: str, *values: Any) -> None:
        """Send a message to the other process.

        Raises:
            OSError: the other side has closed the connection.
        """
        text = dumps([kind, *values]).encode()
        self._socket.sendall(_HEADER.pack(_MARK, len(text)) + text)

    def receive(self, timeout_s: float | None = None) -> list[Any]:
        """Wait for a message, and return its kind and its values.

        Args:
            timeout_s: how long each part of it may take; None for no limit.

        Raises:
            TimeoutError: a part took longer.
            EOFError: the other side has closed the connection.
            IsolationError: what arrived is not a message.
            OSError: the connection is broken.
        """
        self._socket.settimeout(None if timeout_s is None else min(timeout_s, _LONGEST_S))
        try:
            return self._received()
        finally:
            self._socket.settimeout(None)

    def _received(self) -> list[Any]:
        mark, length_bytes = _HEADER.unpack(self._read(_HEADER.size))
        if mark != _MARK:
            raise IsolationError(f"received {mark!r}, where a message should begin")
        try:
            message = json.loads(self._read(length_bytes))
        except (ValueError, RecursionError) as error:
            raise IsolationError(f"received a message that is not JSON ({error})") from None
        if not (isinstance(message, list) and message):
            raise IsolationError("received a message without a kind")
        return message

    def _read(self, size_bytes: int) -> bytes:
        read = bytearray()
        while len(read) < size_bytes:
            part = self._socket.recv(min(size_bytes - len(read), 2**20))
            if not part:
                raise EOFError
            read += part
        return bytes(read)

    def fileno(self) -> int:
        """The descriptor of the connection, for :func:`readable`."""
        return self._socket.fileno()

    def readable(self, timeout_s: float = 0.0) -> bool:
        """Return whether a message, or the end of the connection, arrives within ``timeout_s``."""
        return bool(readable([self.fileno()], timeout_s))

    def close(self) -> None:
        """Close the connection; the other side sees its end."""
        self._socket.close()


def readable(descriptors: Sequence[int], timeout_s: float) -> Collection[int]:
    """The connections on which something has arrived, or that have ended."""
    return [
        descriptor for descriptor in wait(descriptors, timeout_s) if isinstance(descriptor, int)
    ]
