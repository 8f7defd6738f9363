"""A connection that can be cut without either end being told."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Proxy:
    """Stands between those who connect and what they connect to."""

    def __init__(self) -> None:
        self._ends: list[socket.socket] = []
        self._is_cut = threading.Event()

    def in_front_of(self, address: str) -> str:
        """The address to connect to instead of another."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._ends.append(listener)
        threading.Thread(target=self._serve, args=(listener, address), daemon=True).start()
        host, port = listener.getsockname()
        return f"{host}:{port}"

    def _serve(self, listener: socket.socket, address: str) -> None:
        with suppress(OSError):
            near, _ = listener.accept()
            host, _, port = address.rpartition(":")
            far = socket.create_connection((host, int(port)))
            self._ends += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while received := source.recv(2**16):
                if not self._is_cut.is_set():
                    target.sendall(received)

    def cut(self) -> None:
        """Let nothing through any more."""
        self._is_cut.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for end in self._ends:
            end.close()
