"""A command that starts processes elsewhere, such as mpiexec or ssh."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from fwbench.errors import GangFailed
from fwbench.processes.output import Output, ending

#: How long a command may take to end, by itself as what it has started has ended, and when asked.
_STOP_S = 2.0

#: How long a command may take to say that it refuses.
_REFUSAL_S = 120.0


def refusal(command: Sequence[str]) -> str:
    """What a command writes to its standard error as it fails; empty if it does not fail.

    Args:
        command: with its arguments; it gets nothing to read.
    """
    try:
        asked = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_REFUSAL_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (asked.stderr.strip() or ending(asked.returncode)) if asked.returncode else ""


class Launched:
    """A command that runs as long as the processes that it has started elsewhere.

    Args:
        command: with its arguments.
        variables: of its environment, in addition to this process' own.
        said: what comes by its standard input.

    Raises:
        GangFailed: it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], said: str = ""
    ) -> None:
        self._name = command[0]
        self._output = Output()
        try:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=self._output.file,
                stderr=self._output.file,
            )
        except OSError as error:
            self._output.close()
            raise GangFailed(f"{self._name} cannot be started: {error}") from error
        assert self._process.stdin is not None  # noqa: S101 (a pipe was asked for)
        with suppress(OSError), self._process.stdin as pipe:  # it has ended, which shows later
            pipe.write(said.encode())

    def failure(self) -> str:
        """How it ended, with what it wrote; empty while it runs."""
        status = self._process.poll()
        if status is None:
            return ""
        return f"{self._name} {ending(status)}{self._output.tail()}"

    def tail(self) -> str:
        """What it wrote last."""
        return f"{self._name} runs{self._output.tail()}"

    def end(self) -> None:
        """Let it end by itself, as all that it has started has; end it if it does not."""
        for signal_of_end in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_of_end is not None:
                self._process.send_signal(signal_of_end)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
                break
        self._output.close()
