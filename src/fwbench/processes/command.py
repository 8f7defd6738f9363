"""Child processes that run to their end: their output line by line, or as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: How long an interrupted process gets to end by itself: Ctrl-C has reached it, too.
_GRACE_S = 0.25


@dataclass(frozen=True)
class Finished:
    """A process that has ended.

    Attributes:
        status: its exit status; negative for the signal that ended it.
        last_lines: the end of its standard output and standard error.
    """

    status: int
    last_lines: Sequence[str]


@dataclass(frozen=True)
class Captured:
    """A process that has ended, with its whole output.

    Attributes:
        status: its exit status; negative for the signal that ended it.
        output: its standard output.
        errors: its standard error.
    """

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
    own_group: bool = False,
) -> Finished:
    """Run a program to its end; an exception meanwhile, Ctrl-C included, ends the program.

    Args:
        command: the program and its arguments.
        keep_lines: how many of the last lines of output to return.
        folder: its working directory; None for the current one.
        variables: all of its environment variables; None for those of this process.
        say: called with every line of output as it comes.
        own_group: start it in a process group of its own, which is killed as a whole.

    Raises:
        OSError: the program cannot be started.
    """
    last: deque[str] = deque(maxlen=keep_lines)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=own_group,
    ) as process:
        assert process.stdout is not None  # noqa: S101 (a pipe was asked for)
        try:
            for line in process.stdout:
                last.append(line.rstrip())
                say(line.rstrip())
        except BaseException:
            _end(process, own_group=own_group)
            raise
    return Finished(process.returncode, [*last])


def _end(process: subprocess.Popen[str], *, own_group: bool) -> None:
    if own_group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    process.terminate()


def capture(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Captured:
    """Run a program to its end, and return what it wrote.

    Args:
        command: the program and its arguments.
        folder: its working directory; None for the current one.
        variables: all of its environment variables; None for those of this process.

    Raises:
        OSError: the program cannot be started.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return Captured(done.returncode, done.stdout, done.stderr)
