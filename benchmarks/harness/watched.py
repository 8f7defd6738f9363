"""A session of pytest that faults befall, in a folder of its own: started, watched, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

#: The variable by which everything that a session starts is recognised.
MARK = "FWBENCH_FAULTS"

_LOOK_S = 0.01
_LOOK_AGAIN_S = 0.1

_INI = "[pytest]\npythonpath = .\n"

#: pytest, with Ctrl-C switched on even where a script runs in the background of a shell.
_MAIN = (
    "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.exit(pytest.main())"
)


def processes(mark: str) -> Iterator[psutil.Process]:
    """Living processes that have a mark, or descend from one that has."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                yield process


def settled(left: Callable[[], Iterable[str]], within_s: float) -> list[str]:
    """Wait until nothing is left or the time is over; returns the rest."""
    until_s = time.monotonic() + within_s
    while (still := [*left()]) and time.monotonic() < until_s:
        time.sleep(_LOOK_AGAIN_S)
    return still


class Watched:
    """A session of pytest.

    Args:
        folder: where it runs; its name is the mark.
        files: that it has, by name, with what is in them.
        options: of pytest.
        variables: of its environment, in addition to this process's.

    Attributes:
        folder: where it runs.
        process: pytest.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str],
        options: Sequence[str],
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        for name, text in {"pytest.ini": _INI, **files}.items():
            (folder / name).write_text(text, encoding="utf-8")
        with (folder / "output").open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *options],
                cwd=folder,
                env={**os.environ, **(variables or {}), MARK: str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        """The printed text."""
        return (self.folder / "output").read_text(encoding="utf-8", errors="replace")

    def wait(self, done: Callable[[], bool], until_s: float) -> None:
        """Wait for something, for the end of the session, or until a time is over.

        Args:
            done: whether it has come.
            until_s: by the monotonic clock.
        """
        while not done() and self.process.poll() is None and time.monotonic() < until_s:
            time.sleep(_LOOK_S)

    def processes(self) -> Iterator[psutil.Process]:
        """Its living processes, descendants included."""
        return processes(str(self.folder))

    def left(self) -> Iterator[str]:
        """Its living processes, a line for each."""
        for process in self.processes():
            with suppress(psutil.Error):
                yield f"process {process.pid} is left: {' '.join(process.cmdline())[:80]}"

    def end(self) -> None:
        """End what is left of it."""
        for process in [*self.processes()]:
            with suppress(psutil.Error):
                process.kill()
        self.process.wait()
