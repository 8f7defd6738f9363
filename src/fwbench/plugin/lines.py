"""Lines of progress: in place on a terminal, one a minute in a log, or in a file.

The bars of tqdm, rich and others take the line that the cursor is in. Here that line is pytest's,
and often unfinished: so progress takes the line below, and the cursor returns to where it was. The
control sequences are those of ECMA-48 and the VT100 (index, reverse index, save and restore the
cursor, wrap on and off), which every terminal knows that is not dumb.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from fwbench.records.units import duration

#: How often, at most, a terminal's line is drawn, a file is written, and a log gets a line.
_TERMINAL_S, _FILE_S, _LOG_S = 0.25, 1.0, 60.0

Clock = Callable[[], float]


class Line:
    """A place for one line of progress; this one shows nothing."""

    def show(self, status: Status) -> None:
        """Show what is being done, unless something was shown a moment ago."""

    def announce(self, text: str) -> None:
        """Write what a log is to have, whenever it comes; anything else needs no such lines."""

    def clear(self) -> None:
        """Show nothing: somebody else is about to write."""


class TerminalLine(Line):
    """A line that is drawn in place; the cursor returns to where it was.

    Args:
        below: whether the line that the cursor is in is somebody else's; otherwise it is empty.
    """

    # Index, reverse index: make room below without leaving the column.
    _BELOW = "\x1bD\x1bM\x1b7\x1b[B\r", "\x1b8"
    _HERE = "\r", "\r"
    _ERASE = "\x1b[K"
    _WRAP_OFF, _WRAP_ON = "\x1b[?7l", "\x1b[?7h"

    def __init__(self, stream: TextIO, *, below: bool, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._to_line, self._back = self._BELOW if below else self._HERE
        self._clock = clock
        self._next_s = clock()
        self._shown = ""

    def show(self, status: Status) -> None:
        """Draw the line if it has changed."""
        now_s = self._clock()
        if now_s < self._next_s:
            return
        text = status.fit(self._columns() - 1)
        if text != self._shown:
            self._next_s = now_s + _TERMINAL_S
            self._shown = text  # before an interrupt can come between, which is to clear it
            self._draw(f"{self._WRAP_OFF}{text}{self._ERASE}{self._WRAP_ON}")

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            self._draw(self._ERASE)
            self._shown = ""

    def _draw(self, text: str) -> None:
        self._stream.write(f"{self._to_line}{text}{self._back}")
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):
            return shutil.get_terminal_size().columns


class LogLines(Line):
    """A line a minute, and none for what takes less."""

    def __init__(self, write: Callable[[str], Any], clock: Clock = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._next_s = clock() + _LOG_S

    def show(self, status: Status) -> None:
        """Write a line if the latest is a minute old."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + _LOG_S
            self._write(str(status))

    def announce(self, text: str) -> None:
        """Write a line."""
        self._write(text)


class StatusFile(Line):
    """A file that another process reads, to show it as its own."""

    def __init__(self, path: Path, clock: Clock = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._next_s = clock()

    def show(self, status: Status) -> None:
        """Replace what the file says."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + _FILE_S
            with suppress(OSError):  # its reader has gone
                self._path.write_text(json.dumps(asdict(status)), encoding="utf-8")


def read(path: Path) -> Status | None:
    """Content of a :class:`StatusFile`; None if it is empty, or something else."""
    try:
        return Status(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # not there yet, or half written
        return None


def draws_in_place(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """True if a stream is a terminal that can move its cursor."""
    return stream.isatty() and environment.get("TERM", "dumb") != "dumb"


#: A name is not shortened below this, however narrow the terminal is.
_SHORTEST_NAME = 8

_ELLIPSIS = "..."


def whole(seconds: float) -> str:
    """A time that is updated every second, without fractions: ``45 s``, ``3 min 10 s``."""
    return duration(max(0, round(seconds)))


@dataclass(frozen=True)
class Status:
    """Present activity."""

    #: How far it is: ``case 3 of 12, 40 s left``; may be empty.
    head: str
    #: Of what is being done: a case id. In a narrow terminal it is shortened first.
    name: str
    #: What else is known of it: ``4 s``; may be empty.
    tail: str = ""

    def __str__(self) -> str:
        return self._joined(self.name)

    def fit(self, columns: int) -> str:
        """The text within a number of columns."""
        excess = len(str(self)) - columns
        if excess <= 0:
            return str(self)
        kept = max(_SHORTEST_NAME, len(self.name) - excess) - len(_ELLIPSIS)
        shorter = min(self.name, f"{self.name[:kept]}{_ELLIPSIS}", key=len)
        return self._joined(shorter)[: max(0, columns)]

    def _joined(self, name: str) -> str:
        known = ", ".join(filter(None, (name, self.tail)))
        return ": ".join(filter(None, (self.head, known)))


#: How often the thread looks; it does nothing else meanwhile.
_TICK_S = 1.0


class Live:
    """Live output of a command: a line in place on a terminal, elsewhere a line a minute."""

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
        """Show what another process says of itself until the block is left."""
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
