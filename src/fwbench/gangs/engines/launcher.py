"""A launcher: an engine starts it where a role is to run, and it starts the role and watches it.

It has two connections to the controller. One is passed on to the role, which does not know of the
other. By the other the controller sends requests:

================================  ==============================================================
from the controller               meaning
================================  ==============================================================
``("start", arguments, vars)``    start the role; answered with its process ID
``(name, *values)``               call this method of :class:`~fwbench.gangs.launch.LocalRole`;
                                  answered, but for some
                                  (:data:`~fwbench.gangs.launch.UNANSWERED`)
``("kill",)``                     end the role, then answer and end
================================  ==============================================================

When the connection closes, as when the controller has died, the role is ended; when the launcher
dies, the kernel ends the role (:mod:`fwbench.processes.process`).
"""

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fwbench.errors import FwbenchError
from fwbench.gangs.engines.rendezvous import ROLE, TICKET, WATCH, Ticket, connect
from fwbench.gangs.launch import UNANSWERED, LocalRole
from fwbench.processes import process
from fwbench.processes.channel import Channel

#: How long a launcher may take to answer, beyond what it is asked to wait; and to start a process.
_ANSWER_S, _START_S = 3.0, 30.0


def command(interpreter: str = sys.executable) -> list[str]:
    """The command that starts a launcher; its words need no quotes in a shell."""
    return [interpreter, "-P", "-m", __name__]


def main() -> None:
    """Entry point; the ticket is in the environment, or the first line of standard input."""
    process.tie(os.getppid())
    process.initialize()
    try:
        ticket = Ticket.parse(os.environ.pop(TICKET, "") or sys.stdin.readline())
        _launch(connect(ticket, ROLE), Channel(connect(ticket, WATCH)))
    except FwbenchError as error:
        sys.exit(f"fwbench: {error}")


def _launch(end: socket.socket, channel: Channel) -> None:
    with suppress(EOFError, OSError, FwbenchError):
        _, arguments, variables = channel.receive()
        try:
            role = LocalRole(end, arguments, variables)
        except OSError as error:
            channel.send("failed", error.errno, error.strerror)
            return
        end.close()  # the role has it, and its end must be noticed
        try:
            channel.send("done", role.pid)
            _serve(role, channel)
        finally:
            role.kill()


def _serve(role: LocalRole, channel: Channel) -> None:
    """Answer requests until the controller ends the role, or closes the connection."""
    while True:
        name, *values = channel.receive()
        answer = role.request(name, *values)
        if name not in UNANSWERED:
            channel.send("done", answer)
        if name == "kill":
            return


class RemoteRole:
    """A role's process on another machine; its launcher answers for it.

    Raises:
        OSError: its machine does not start the process, or the launcher has gone.
    """

    def __init__(
        self, end: socket.socket, arguments: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self._channel = Channel(end)
        self._is_lost = False
        try:
            self._channel.send("start", [*arguments], {**variables})
            kind, *values = self._channel.receive(_START_S)
        except (EOFError, FwbenchError) as error:
            raise OSError(f"its launcher has gone ({error!r})") from None
        if kind == "failed":
            raise OSError(*values)
        self.pid = int(values[0])

    def request(self, name: str, *values: Any, lost: Any = None) -> Any:
        """Ask the launcher, for so many seconds; ``lost`` if it does not answer, now or before."""
        if self._is_lost:
            return lost
        try:
            self._channel.send(name, *values)
            if name in UNANSWERED:
                return None
            return self._channel.receive(sum(values) + _ANSWER_S)[1]
        except (EOFError, OSError, FwbenchError):
            self._is_lost = True
            return lost

    def kill(self) -> None:
        """End it; if the launcher does not answer, it ends with the connection."""
        self.request("kill")
        self._is_lost = True
        self._channel.close()


if __name__ == "__main__":
    main()
