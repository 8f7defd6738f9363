"""Messages between the parent and a worker: JSON, so that no value on one side breaks the other.

What JSON cannot hold is replaced as pytest-benchmark replaces it in its files; tuples arrive as
lists.
"""

from __future__ import annotations

import json
from multiprocessing.connection import Connection
from typing import Any

from fwbench.jsontext import dumps


class Channel:
    """One end of a connection.

    Args:
        connection: to the other process.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, kind: str, *values: Any) -> None:
        """Send a message to the other process.

        Args:
            kind: of the message.
            values: that JSON can hold.

        Raises:
            OSError: the other side has closed the connection.
        """
        self._connection.send_bytes(dumps([kind, *values]).encode())

    def receive(self) -> list[Any]:
        """Wait for a message, and return its kind and its values.

        Raises:
            EOFError: the other side has closed the connection.
            OSError: the connection is broken.
        """
        message: list[Any] = json.loads(self._connection.recv_bytes())
        return message

    def readable(self, timeout_s: float = 0.0) -> bool:
        """Whether a message, or the end of the connection, arrives within ``timeout_s``."""
        return self._connection.poll(timeout_s)

    def close(self) -> None:
        """Close the connection; the other side sees its end."""
        self._connection.close()
