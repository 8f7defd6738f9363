"""A terminal, as far as programs that write to it can tell."""

import fcntl
import os
import pty
import socket
import struct
import subprocess
import termios
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyte

from fwbench.report.terminal.screen import Outcome, View, screen
from fwbench.report.terminal.text import Line, plain

#: A plugin that lets terminals and logs have every line, however fast the machine is.
OFTEN = "from fwbench.plugin import lines\nlines._LOG_S = lines._TERMINAL_S = 0.0\n"


class Terminal:
    """The lines that a terminal shows of its input.

    Args:
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
        self.written += text
        self._stream.feed(text)

    def flush(self) -> None:
        """Do nothing: everything is shown at once."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
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


WIDE = View(width=200)
IN_FULL = View(width=200, verbosity=1)
QUIET = View(width=200, verbosity=-1)


def entry(framework: str, completion_s: float = 1.0, **facts: Any) -> dict[str, Any]:
    """An entry of pytest-benchmark's JSON, as far as it is printed from.

    Args:
        facts: what else is under ``extra_info``, and the ``params``.
    """
    params = facts.pop("params", {})
    values = {
        "framework": framework,
        "framework_version": "1.0",
        "execution": "eager",
        "workload": "gemm",
        "device": "cpu",
        "device_name": "Fake CPU",
        "direction": "forward",
        "dtype": "float32",
        "size": 8,
        "threads": 2,
        "completion_s": completion_s,
        "dispatch_s": completion_s,
        "steady": True,
        **facts,
    }
    param = f"{values['workload']}-{framework}"
    return {"param": param, "params": params, "extra_info": {"fwbench": values}}


def texts(lines: Iterable[Line]) -> list[str]:
    """Lines without styles, and without what is blank at their ends."""
    return [plain(line).rstrip() for line in lines]


def shown(*records: dict[str, Any], view: View = WIDE, **outcome: Any) -> list[str]:
    """The lines that are printed of cases, but those on what to do next.

    Args:
        view: how much is shown.
    """
    return up_to_next(texts(screen(Outcome(records, **outcome), view)))


def up_to_next(lines: Sequence[str]) -> list[str]:
    """Lines of a screen above those on what to do next."""
    ends = [number for number, line in enumerate(lines) if line.startswith("Next: ")]
    return [*lines[: ends[0]]] if ends else [*lines]


def styled(lines: Iterable[Line], style: str) -> list[str]:
    """The pieces of lines that have a style."""
    return [span.text for line in lines for span in line if span.style == style]


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
        """Stop passing anything on."""
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
