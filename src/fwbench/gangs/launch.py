"""Roles as their controller sees them, and the engine ``local``, which starts them here.

Other engines are in :mod:`fwbench.gangs.engines`, or in other packages.
"""

import os
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from fwbench.errors import NetworkUnavailable
from fwbench.gangs.network import ShapedNetwork
from fwbench.machine import thread_variables
from fwbench.measure.resources import processors_s
from fwbench.options.values import LOCAL
from fwbench.processes.channel import Channel, readable
from fwbench.processes.process import Process, python
from fwbench.terms.replicas import LOOPBACK, link_of

#: What a role runs. A string, because it is an argument of an interpreter.
ROLE_MAIN = "from fwbench.gangs.role import main; main()"

#: How long the rest of a message may take that has begun.
_PART_S = 5.0

#: The variables of this process' environment that roles on other machines get: its toggles.
_OWN_VARIABLES = "FWBENCH_"

#: Requests to a :class:`RoleHandle` that have no answer.
UNANSWERED = ("mark", "ask_for_traceback")


class RoleHandle(Protocol):
    """The process of a role: a child of this one, or one on another machine."""

    @property
    def pid(self) -> int:
        """Its process ID, on its machine."""

    def request(self, name: str, *values: Any, lost: Any = None) -> Any:
        """Call a method of :class:`LocalRole`; ``lost`` if the process is out of reach."""

    def kill(self) -> None:
        """End it, and discard its output."""


class LocalRole(Process):
    """A role as a child of this process, and in its session: they end together.

    Args:
        end: the role's end of its connection to the controller, which it inherits.
        prefix: a command that runs the rest of its line and becomes this process, such as one that
            enters a network namespace.

    Raises:
        OSError: the system does not start the process.
    """

    def __init__(
        self,
        end: socket.socket,
        arguments: Collection[str],
        variables: Mapping[str, str],
        prefix: Sequence[str] = (),
    ) -> None:
        command = [*prefix, sys.executable, *python(ROLE_MAIN), str(end.fileno()), *arguments]
        super().__init__(command, {**os.environ, **variables}, connection=end)

    def request(self, name: str, *values: Any, lost: Any = None) -> Any:
        """Call one of its methods."""
        return getattr(self, name)(*values)

    def processors_s(self) -> float:
        """Seconds of processors that it, and all that it has started, have had."""
        return processors_s(self.pid)


class RoleProcess:
    """A process of a gang, and the connection to it."""

    def __init__(self, name: str, handle: RoleHandle, end: socket.socket) -> None:
        self.name = name
        self._handle = handle
        self._channel = Channel(end)

    @property
    def pid(self) -> int:
        """The process ID, on its machine."""
        return self._handle.pid

    def fileno(self) -> int:
        """The descriptor of its connection, for :func:`ready`."""
        return self._channel.fileno()

    def send(self, kind: str, *values: Any) -> None:
        """Send a message.

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

    def ending(self, timeout_s: float = 0.0) -> str | None:
        """The way it ended, as a clause; None if it still runs after ``timeout_s``."""
        lost = "was lost with its launcher (killed, or its machine cannot be reached any more)"
        return self._handle.request("ending", timeout_s, lost=lost)

    def mark(self) -> None:
        """Let :meth:`tail` begin here."""
        self._handle.request("mark")

    def tail(self) -> str:
        """The last lines that it wrote since the mark, ready to append to a message."""
        return str(self._handle.request("tail", lost="; its output is lost"))

    def processors_s(self) -> float:
        """Seconds of processors that it, and all that it has started, have had."""
        return float(self._handle.request("processors_s", lost=0.0))

    def is_stopped(self) -> bool:
        """Return whether a signal or a debugger has stopped it."""
        return bool(self._handle.request("is_stopped", lost=False))

    def ask_for_traceback(self) -> None:
        """Have it write where it is."""
        self._handle.request("ask_for_traceback")

    def stop(self) -> None:
        """Close its connection, at which it ends by itself."""
        self._channel.close()

    def kill(self) -> None:
        """End it, and discard its output."""
        self._handle.kill()
        self._channel.close()


def ready(roles: Collection[RoleProcess], timeout_s: float) -> list[RoleProcess]:
    """The roles that have sent something, or whose connection has ended."""
    descriptors = readable([role.fileno() for role in roles], timeout_s)
    return [role for role in roles if role.fileno() in descriptors]


def role_arguments(framework: str, threads: int) -> tuple[list[str], dict[str, str]]:
    """The arguments of a role's process, and variables of its environment, on any machine."""
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(_OWN_VARIABLES)
    }
    return [framework, str(threads)], variables | thread_variables(threads)


class Hosts:
    """Where the roles of one gang run: a host for each, here the loopback interface for all."""

    def address(self, host: int) -> str:
        """The address at which roles on other hosts reach the one on this."""
        return "127.0.0.1"

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """Start a role on a host, here by this interpreter in this session of processes."""
        return start_here(name, framework, threads, ())

    def traffic_bytes(self, host: int) -> int | None:
        """The bytes that a host received and sent; None if they are not counted for it alone."""
        return None

    def close(self) -> None:
        """Release the hosts, whose roles have ended."""


class Engine(Protocol):
    """Finds hosts for gangs.

    Engines other than ``local`` are created from the
    :class:`~fwbench.gangs.engines.places.Machines` of the file of ``fw_places``.
    """

    def refuse_more(self, number: int) -> None:
        """Refuse a gang with too many roles, as far as that is known before it starts."""

    def hosts(self, number: int, network: str) -> Hosts:
        """Hosts for the roles of a gang."""


class Local:
    """Starts roles as child processes on this machine."""

    def refuse_more(self, number: int) -> None:
        """Refuse nothing: this machine takes any number of roles."""

    def hosts(self, number: int, network: str) -> Hosts:
        """Hosts on the loopback interface, or each in a network namespace of its own."""
        link = link_of(network)
        return Hosts() if link is None else Shaped(link, number)


def refuse_network(network: str, owner: str) -> None:
    """Refuse to shape a network that exists already."""
    if owner and network != LOOPBACK:
        raise NetworkUnavailable(
            f"--fw-network {network} is created between processes of one machine, and {owner} have "
            f"their own: leave out --fw-network, or use -o fw_engine={LOCAL} without fw_places"
        )


class Shaped(ShapedNetwork, Hosts):
    """Child processes in network namespaces that are joined by a switch."""

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """Start a role by this interpreter, in the namespace."""
        return start_here(name, framework, threads, self.prefix(host))


def start_here(name: str, framework: str, threads: int, prefix: Sequence[str]) -> RoleProcess:
    """Start a role as a child of this process, over a pair of sockets.

    Raises:
        OSError: the system does not start the process.
    """
    own_end, other_end = socket.socketpair()
    with other_end:
        try:
            role = LocalRole(other_end, *role_arguments(framework, threads), prefix)
            return RoleProcess(name, role, own_end)
        except OSError:
            own_end.close()
            raise
