"""What starts the roles of a gang, and where: child processes of this one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Protocol

from fwbench.composition.link import LOOPBACK, link_of
from fwbench.errors import UsageError, unknown
from fwbench.machine import thread_variables
from fwbench.options.values import ENGINES, LOCAL, engines
from fwbench.processes.role import RoleProcess
from fwbench.scale.network import ShapedNetwork


class Hosts(Protocol):
    """Where the roles of one gang run: a host for each, as far as the network goes."""

    def address(self, host: int) -> str:
        """The address at which roles on other hosts reach the one on this.

        Args:
            host: which one, from 0.
        """

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """Start a role.

        Args:
            host: where.
            name: for messages.
            framework: that it loads.
            threads: that it computes with.

        Raises:
            OSError: it cannot be started.
        """

    def traffic_bytes(self, host: int) -> int | None:
        """What has come and gone at a host; None if that is not known of it alone.

        Args:
            host: which one.
        """

    def close(self) -> None:
        """Give the hosts back; their roles have ended."""


class Engine(Protocol):
    """Finds hosts for gangs."""

    def hosts(self, number: int, network: str) -> Hosts:
        """Hosts for the roles of a gang.

        Args:
            number: of them.
            network: what joins them, as the toggle ``network`` calls it.

        Raises:
            NetworkUnavailable: there is no such network.
        """


class Local:
    """Child processes on this machine."""

    def hosts(self, number: int, network: str) -> Hosts:
        """All on the loopback interface, or each in a network namespace of its own."""
        return Shaped(number, network) if network != LOOPBACK else Loopback()


class Loopback:
    """Child processes that talk over the loopback interface of their machine."""

    def address(self, host: int) -> str:
        """All of them have that of loopback."""
        return "127.0.0.1"

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """By this interpreter, in this session of processes."""
        return _child(name, framework, threads, ())

    def traffic_bytes(self, host: int) -> int | None:
        """The counters of loopback are everybody's."""
        return None

    def close(self) -> None:
        """There is nothing to give back."""


class Shaped:
    """Child processes in network namespaces that are joined by a switch.

    Args:
        number: of namespaces.
        network: the name of their links.

    Raises:
        NetworkUnavailable: the system lacks something that it takes.
    """

    def __init__(self, number: int, network: str) -> None:
        link = link_of(network)
        assert link is not None, network  # noqa: S101 (Loopback is for the other one)
        self.network = ShapedNetwork(link, number)

    def address(self, host: int) -> str:
        """That of the namespace."""
        return self.network.address(host)

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """By this interpreter, in this session of processes and in the namespace."""
        return _child(name, framework, threads, self.network.prefix(host))

    def traffic_bytes(self, host: int) -> int | None:
        """What its link has carried."""
        try:
            return self.network.traffic_bytes(host)
        except OSError:  # it has gone
            return None

    def close(self) -> None:
        """Remove the namespaces."""
        self.network.close()


def _child(name: str, framework: str, threads: int, prefix: Sequence[str]) -> RoleProcess:
    return RoleProcess(name, [framework, str(threads)], thread_variables(threads), prefix)


def engine(name: str) -> Engine:
    """What starts gangs.

    Args:
        name: ``local``, or an entry point of the group :data:`~fwbench.options.values.ENGINES`.

    Raises:
        UsageError: there is no such engine, or it cannot be imported.
    """
    if name == LOCAL:
        return Local()
    for point in metadata.entry_points(group=ENGINES, name=name):
        try:
            found: Engine = point.load()()
        except Exception as error:
            raise UsageError(
                f"the engine {name} ({point.value}) cannot be used: {error!r}; mend it, or use "
                f"--fw-engine {LOCAL}"
            ) from error
        return found
    raise unknown("engine", name, engines())
