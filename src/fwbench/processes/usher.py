"""An usher: started by an engine where a role is to run, it starts the role and looks after it.

It has two connections to the controller. One it hands to the role, which knows nothing of the
other; by that the controller asks what it would ask a child of its own:

================================  ==============================================================
from the controller               meaning
================================  ==============================================================
``("start", arguments, vars)``    start the role; answered with the number of its process
``("how_it_ended", timeout_s)``   how it ended, or null
``("tail",)``                     what it wrote last
``("is_asleep",)``                whether nothing of it runs
``("is_stopped",)``               whether a signal has stopped it
``("mark",)``                     forget what it wrote; not answered
``("ask_for_traceback",)``        have it write where it is; not answered
``("kill",)``                     end it; answered when it has ended
================================  ==============================================================

When the connection closes, because the controller wants it or has died, the role is ended; when the
usher dies, the kernel ends the role (:mod:`fwbench.processes.child`).
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fwbench.errors import FwbenchError
from fwbench.processes import child
from fwbench.processes.channel import Channel
from fwbench.processes.meeting import INVITATION, ROLE, WATCH, Invitation, come
from fwbench.processes.role import Child

#: Which requests have no answer.
_UNANSWERED = ("mark", "ask_for_traceback")

#: How long an usher may take to answer, beyond what it is asked to wait.
_ANSWER_S = 3.0

#: How long it may take to start a process.
_START_S = 30.0


def command(interpreter: str = sys.executable) -> list[str]:
    """The command that starts an usher; no shell changes it.

    Args:
        interpreter: that has fwbench.
    """
    return [interpreter, "-P", "-m", __name__]


def main() -> None:
    """Entry point; the invitation is in the environment, or the first line of standard input."""
    child.begin()
    try:
        invitation = Invitation.parse(os.environ.pop(INVITATION, "") or sys.stdin.readline())
        _usher(come(invitation, ROLE), Channel(come(invitation, WATCH)))
    except FwbenchError as error:
        sys.exit(f"fwbench: {error}")


def _usher(end: socket.socket, channel: Channel) -> None:
    with suppress(EOFError, OSError, FwbenchError):
        _, arguments, variables = channel.receive()
        try:
            role = Child(end, arguments, variables)
        except OSError as error:
            channel.send("failed", error.errno, error.strerror)
            return
        end.close()  # the role has it, and its end is to be seen
        try:
            channel.send("done", role.pid)
            _serve(role, channel)
        finally:
            role.kill()


def _serve(role: Child, channel: Channel) -> None:
    """Do what the controller asks until it wants the role to end, or hangs up.

    Raises:
        EOFError: it has.
        OSError: it has, too.
    """
    while True:
        kind, *values = channel.receive()
        if kind == "kill":
            role.kill()
            channel.send("done", None)
            return
        answer = getattr(role, kind)(*values)
        if kind not in _UNANSWERED:
            channel.send("done", answer)


class Ushered:
    """A role's process as its usher tells of it; see :class:`~fwbench.processes.role.Child`.

    Args:
        end: the connection to the usher.
        arguments: of the role's process, behind the descriptor of its connection.
        variables: of its environment.

    Raises:
        OSError: its machine starts no such process, or the usher has gone.
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
            raise OSError(f"what was to start it has gone ({error!r})") from None
        if kind == "failed":
            raise OSError(*values)
        self.pid = int(values[0])

    def _ask(self, kind: str, *values: Any, wait_s: float = 0.0, lost: Any = None) -> Any:
        """What the usher answers; ``lost`` if it does not, and from then on."""
        if self._is_lost:
            return lost
        try:
            self._channel.send(kind, *values)
            return self._channel.receive(wait_s + _ANSWER_S)[1]
        except (EOFError, OSError, FwbenchError):
            self._is_lost = True
            return lost

    def _tell(self, kind: str) -> None:
        with suppress(OSError):
            self._channel.send(kind)

    def how_it_ended(self, timeout_s: float) -> str | None:
        """How it ended, as a clause; None if it has not."""
        lost = "was lost with what watched it (killed, or its machine cannot be reached any more)"
        return self._ask("how_it_ended", timeout_s, wait_s=timeout_s, lost=lost)

    def mark(self) -> None:
        """Let :meth:`tail` begin here."""
        self._tell("mark")

    def tail(self) -> str:
        """The last lines that it wrote since the mark."""
        return self._ask("tail", lost="; nobody knows what it wrote")

    def is_asleep(self) -> bool:
        """Whether nothing of it runs."""
        return self._ask("is_asleep", lost=False)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it, or a debugger."""
        return self._ask("is_stopped", lost=False)

    def ask_for_traceback(self) -> None:
        """Have it write where it is."""
        self._tell("ask_for_traceback")

    def kill(self) -> None:
        """End it; whatever becomes of this message, it ends with the connection."""
        self._ask("kill")
        self._is_lost = True
        self._channel.close()


if __name__ == "__main__":
    main()
