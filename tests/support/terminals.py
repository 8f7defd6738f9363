"""A terminal, as far as programs that write to it can tell."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte


class Terminal:
    """What a terminal shows of what is written to it.

    Args:
        columns: its width.
        lines: its height; what scrolls out at the top is kept.

    Attributes:
        written: everything that was written to it.
    """

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.columns, self.height = columns, lines
        self.written = ""
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000)
        self._screen.set_mode(pyte.modes.LNM)  # as the line discipline has it: newline, and return
        self._stream = pyte.Stream(self._screen)

    def write(self, text: str) -> None:
        """Show a text."""
        self.written += text
        self._stream.feed(text)

    def flush(self) -> None:
        """Do nothing: everything is shown at once."""

    def isatty(self) -> bool:
        """It is one."""
        return True

    def fileno(self) -> int:
        """Fail: it has no descriptor."""
        raise OSError

    @property
    def shown(self) -> list[str]:
        """Its lines, those that have scrolled out as well, up to the last with any text."""
        above = [
            "".join(line[column].data for column in range(self.columns))
            for line in self._screen.history.top
        ]
        lines = [line.rstrip() for line in (*above, *self._screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def cursor(self) -> tuple[int, int]:
        """Where the cursor is: row and column, from 0."""
        return self._screen.cursor.y, self._screen.cursor.x

    def run(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
    ) -> int:
        """Run a program on it to its end, and return its exit status."""
        own_end, other_end = pty.openpty()
        size = struct.pack("HHHH", self.height, self.columns, 0, 0)
        fcntl.ioctl(other_end, termios.TIOCSWINSZ, size)
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TERM": "xterm", **(variables or {})},
            stdin=other_end,
            stdout=other_end,
            stderr=other_end,
            start_new_session=True,
        )
        os.close(other_end)
        try:
            while part := self._read(own_end):
                self.write(part.decode(errors="replace"))
            return process.wait()
        finally:
            os.close(own_end)

    def _read(self, descriptor: int) -> bytes:
        try:
            return os.read(descriptor, 65_536)
        except OSError:  # so Linux says that the other end is closed
            return b""
