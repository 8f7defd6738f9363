"""Progress of a command that waits for other programs: a thread keeps its line up to date."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fwbench.plugin.progress.lines import (
    Line,
    LogLines,
    Status,
    TerminalLine,
    draws_in_place,
    read,
    whole,
)

#: How often the thread looks; it does nothing else meanwhile.
_TICK_S = 1.0


class Live:
    """Live output of a command while it works.

    Args:
        stream: to write to; a terminal gets a line in place, and anything else a line a minute.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._line: Line = (
            TerminalLine(stream, below=False)
            if draws_in_place(stream, os.environ)
            else LogLines(self._write)
        )

    def say(self, text: str) -> None:
        """Write a line that stays."""
        with self._lock:
            self._line.clear()
            self._write(text)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show what is being done, and for how long, until the block is left."""
        start_s = time.monotonic()
        with self._showing(lambda: Status("", what, whole(time.monotonic() - start_s))):
            yield

    @contextmanager
    def watching(self, path: Path) -> Iterator[None]:
        """Show what another process says of itself until the block is left.

        Args:
            path: of its :class:`~fwbench.plugin.progress.lines.StatusFile`.
        """
        with self._showing(lambda: read(path)):
            yield

    @contextmanager
    def _showing(self, status: Callable[[], Status | None]) -> Iterator[None]:
        left = threading.Event()
        thread = threading.Thread(target=self._keep_showing, args=(status, left), daemon=True)
        thread.start()
        try:
            yield
        finally:
            left.set()
            thread.join()
            self._line.clear()

    def _keep_showing(self, status: Callable[[], Status | None], left: threading.Event) -> None:
        with suppress(OSError):  # the reader has gone; the command's own output says so
            while not left.wait(_TICK_S):
                known = status()
                if known is not None:
                    with self._lock:
                        self._line.show(known)

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)
