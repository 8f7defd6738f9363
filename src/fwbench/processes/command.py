"""Child processes that run to their end: their output line by line, or as a whole.

They end with this process, however it ends: see :mod:`fwbench.processes.guard`.
"""

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwbench.processes import guard
from fwbench.processes.interruption import held

#: How long an interrupted program gets to end by itself.
_GRACE_S = 2.0

_STATUS_BYTES = 64


@dataclass(frozen=True)
class Finished:
    """A process that has ended."""

    #: Its exit status; negative for the signal that ended it.
    status: int
    last_lines: Sequence[str]


@dataclass(frozen=True)
class Captured:
    """A process that has ended, with its whole output."""

    status: int
    output: str
    errors: str


def run(
    command: Sequence[str],
    *,
    keep_lines: int,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    say: Callable[[str], Any] = lambda _: None,
) -> Finished:
    """Run a program to its end; an exception meanwhile, Ctrl-C included, ends the program.

    Args:
        folder: its working directory; None for the current one.
        variables: all of its environment variables; None for those of this process.

    Raises:
        OSError: the program cannot be started.
    """
    last: deque[str] = deque(maxlen=keep_lines)
    with _guarded(command, folder, variables) as program:
        assert program.process.stdout is not None  # noqa: S101 (a pipe was asked for)
        for line in program.process.stdout:
            last.append(line.rstrip())
            say(line.rstrip())
    return Finished(program.status(), [*last])


def capture(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Captured:
    """Run a program to its end, and return what it wrote; an exception meanwhile ends it.

    Raises:
        OSError: the program cannot be started.
    """
    with _guarded(command, folder, variables, errors=subprocess.PIPE) as program:
        output, errors = program.process.communicate()
    return Captured(program.status(), output, errors)


def ask(
    command: Sequence[str], *, folder: Path | None = None, timeout_s: float | None = None
) -> Captured:
    """Run a program that answers at once, unguarded: starting a guard would take longer.

    Args:
        timeout_s: after which it is killed; None for no limit.

    Raises:
        OSError: the program cannot be started.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Captured(-signal.SIGKILL, "", str(error))
    return Captured(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(
    command: Sequence[str],
    *,
    output: Path,
    errors: Path | None = None,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator["Running"]:
    """A program that runs beside others; at the end of the block it is waited for.

    An exception in the block ends the program.

    Args:
        output: the file for what it writes.
        errors: the file for its standard error; None for that of the output.

    Raises:
        OSError: the program cannot be started.
    """
    with ExitStack() as files:
        out, *more = (
            files.enter_context(path.open("wb")).fileno() for path in (output, errors) if path
        )
        err = more[0] if more else subprocess.STDOUT
        with _guarded(command, folder, variables, output=out, errors=err) as program:
            yield program


class Running:
    """A program with its guard."""

    def __init__(
        self, command: Sequence[str], process: subprocess.Popen[str], connection: socket.socket
    ) -> None:
        self.process = process
        self._command = command
        self._connection = connection
        self._status_text = ""

    def fileno(self) -> int:
        """A descriptor that becomes readable when it has ended."""
        return self._connection.fileno()

    def status(self) -> int:
        """The exit status of the program, which has ended."""
        if self._status_text.startswith("!"):
            number = int(self._status_text[1:])
            raise OSError(number, os.strerror(number), self._command[0])
        return int(self._status_text) if self._status_text else -signal.SIGKILL  # with its guard

    def wait(self) -> None:
        """Wait until the program has ended, and all that is left of its group."""
        self._status_text = self._connection.recv(_STATUS_BYTES).decode()
        self.process.wait()

    def end(self, grace_s: float = _GRACE_S) -> None:
        """End the program as Ctrl-C does; soon after, kill it and all that it has started.

        Args:
            grace_s: how long it gets to end by itself.
        """
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_s)
            os.killpg(self.process.pid, signal.SIGKILL)


@contextmanager
def _guarded(
    command: Sequence[str],
    folder: Path | None,
    variables: Mapping[str, str] | None,
    *,
    output: int = subprocess.PIPE,
    errors: int = subprocess.STDOUT,
) -> Iterator[Running]:
    """A program that is at work; at the end it has ended."""
    own_end, other_end = socket.socketpair()
    with own_end, other_end:
        process = subprocess.Popen(
            # -I, -S: none of the variables and packages that are meant for the program.
            [sys.executable, "-I", "-S", guard.__file__, str(other_end.fileno()), *command],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            text=True,
            errors="replace",
            pass_fds=[other_end.fileno()],
            start_new_session=True,
        )
        with process:
            other_end.close()
            program = Running(command, process, own_end)
            try:
                yield program
                program.wait()
            except BaseException:
                with held():
                    program.end()
                raise
