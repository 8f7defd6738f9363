"""A role of a gang as its controller sees it: started, sent messages, listened to, ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol

import psutil

from fwbench.processes.channel import Channel
from fwbench.processes.output import Output, ending

#: What a role runs. A string, because imports do not run up to the room of gangs.
ROLE_MAIN = "from fwbench.gangs.role import main; main()"

#: How long the rest of a message may take that has begun.
_PART_S = 5.0

_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)

#: States of threads that get on: running or ready to, and waiting for a disk.
_AT_WORK = ("R", "D")


class Child:
    """A role as a child of this process, and in its session: they end together.

    Args:
        end: the role's end of its connection to the controller, which it inherits.
        arguments: of the process, behind the descriptor of its connection.
        variables: of its environment, in addition to this process' own.
        prefix: the command that starts it elsewhere, such as in a network namespace, and then is
            this process.

    Raises:
        OSError: the system starts no such process.
    """

    def __init__(
        self,
        end: socket.socket,
        arguments: Collection[str],
        variables: Mapping[str, str],
        prefix: Sequence[str] = (),
    ) -> None:
        with ExitStack() as unstarted:
            self._output = unstarted.enter_context(Output())
            self._process = subprocess.Popen(
                [
                    *prefix,
                    # -P: a torch.py in the current folder is not PyTorch.
                    *(sys.executable, "-P", "-c", ROLE_MAIN),
                    *(str(end.fileno()), *arguments),
                ],
                env={**os.environ, **variables},
                pass_fds=[end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._output.file,
                stderr=self._output.file,
            )
            unstarted.pop_all()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def how_it_ended(self, timeout_s: float) -> str | None:
        """How the process ended, as a clause; None if it has not.

        Args:
            timeout_s: how long to wait for its end.
        """
        with suppress(subprocess.TimeoutExpired):
            return ending(self._process.wait(timeout_s))
        return None

    def mark(self) -> None:
        """Let :meth:`tail` begin here."""
        self._output.mark()

    def tail(self) -> str:
        """The last lines that it wrote since the mark, ready to append to a message."""
        return self._output.tail()

    def is_asleep(self) -> bool:
        """Whether nothing of it runs: neither a thread of its own nor a process that it started.

        It may wait for others, or be stopped; the system may not tell.
        """
        if sys.platform != "linux":
            return False
        return _sleeps(self.pid) and all(map(_sleeps, _descendants(self.pid)))

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it, or a debugger."""
        with suppress(psutil.Error):
            return psutil.Process(self.pid).status() in _STOPPED
        return False

    def ask_for_traceback(self) -> None:
        """Have it write where it is."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """End it, and forget what it wrote."""
        self._process.kill()
        self._process.wait()
        self._output.close()


class Body(Protocol):
    """The process of a role: a :class:`Child`, or one on another machine, of which others tell."""

    @property
    def pid(self) -> int:
        """Its number, on its machine."""

    def how_it_ended(self, timeout_s: float) -> str | None:
        """As that of a child."""

    def mark(self) -> None:
        """As that of a child."""

    def tail(self) -> str:
        """As that of a child."""

    def is_asleep(self) -> bool:
        """As that of a child."""

    def is_stopped(self) -> bool:
        """As that of a child."""

    def ask_for_traceback(self) -> None:
        """As that of a child."""

    def kill(self) -> None:
        """As that of a child."""


class RoleProcess:
    """A process of a gang, and the connection to it.

    Args:
        name: for messages: ``worker 1 of 2``.
        body: its process.
        end: this process' end of the connection.

    Attributes:
        name: the same.
        body: the same.
    """

    def __init__(self, name: str, body: Body, end: socket.socket) -> None:
        self.name = name
        self.body = body
        self._channel = Channel(end)

    @property
    def pid(self) -> int:
        """The number of the process, on its machine."""
        return self.body.pid

    def fileno(self) -> int:
        """The descriptor of its connection, for :func:`ready`."""
        return self._channel.fileno()

    def send(self, kind: str, *values: Any) -> None:
        """Send a message.

        Args:
            kind: of the message; see :mod:`fwbench.gangs.role`.
            values: that JSON can hold.

        Raises:
            OSError: the role has closed the connection.
        """
        self._channel.send(kind, *values)

    def receive(self) -> list[Any]:
        """The message that has arrived: its kind and its values.

        Raises:
            EOFError: the role has closed the connection.
            OSError: the connection is broken, or the message does not end.
            IsolationError: what arrived is not a message.
        """
        return self._channel.receive(_PART_S)

    def stop(self) -> None:
        """Close its connection, at which it ends by itself."""
        self._channel.close()

    def kill(self) -> None:
        """End it, and forget what it wrote."""
        self.body.kill()
        self._channel.close()


def child(
    name: str, arguments: Collection[str], variables: Mapping[str, str], prefix: Sequence[str] = ()
) -> RoleProcess:
    """A role that is a child of this process, over a pair of sockets that nobody else can reach.

    Args:
        name: for messages.
        arguments: as of :class:`Child`.
        variables: as of :class:`Child`.
        prefix: as of :class:`Child`.

    Raises:
        OSError: the system starts no such process.
    """
    own_end, other_end = socket.socketpair()
    with other_end:
        try:
            return RoleProcess(name, Child(other_end, arguments, variables, prefix), own_end)
        except OSError:
            own_end.close()
            raise


def _sleeps(pid: int) -> bool:
    """Whether no thread of a process computes, waits for a processor or for a disk; proc(5)."""
    with suppress(OSError):  # it has ended
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            state = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
            if state in _AT_WORK:
                return False
    return True


def _descendants(pid: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def ready(roles: Collection[RoleProcess], timeout_s: float) -> list[RoleProcess]:
    """The roles that have sent something, or whose connection has ended.

    Args:
        roles: to wait for.
        timeout_s: how long, for the first of them.
    """
    found = wait([role.fileno() for role in roles], timeout_s)
    return [role for role in roles if role.fileno() in found]
