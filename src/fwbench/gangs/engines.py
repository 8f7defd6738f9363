"""What starts the roles of a gang, and where: here, by ``local``, or by another engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Protocol

from fwbench.errors import NetworkUnavailable, UsageError, unknown
from fwbench.gangs.arrivals import Arrivals, work
from fwbench.gangs.machines import Machines
from fwbench.gangs.network import ShapedNetwork
from fwbench.gangs.places import composition_of
from fwbench.grid import Cell
from fwbench.manifest import Manifest
from fwbench.options.values import ENGINES, LOCAL, engines
from fwbench.processes.launched import Launched
from fwbench.processes.meeting import Meeting
from fwbench.processes.role import RoleProcess, child
from fwbench.processes.usher import command
from fwbench.terms.link import LOOPBACK, link_of


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
    """Finds hosts for gangs; made of the machines that the file of ``--fw-places`` names."""

    def refuse_more(self, number: int) -> None:
        """Refuse a gang with too many roles, as far as that is known before it starts.

        Args:
            number: of its roles.

        Raises:
            UsageError: there are fewer places, each for one of them.
        """

    def hosts(self, number: int, network: str) -> Hosts:
        """Hosts for the roles of a gang.

        Args:
            number: of them.
            network: what joins them, as the toggle ``network`` calls it.

        Raises:
            NetworkUnavailable: there is no such network.
        """


class Local:
    """Child processes on this machine, or at places that a file names.

    Args:
        machines: of that file.

    Raises:
        UsageError: it has no places.
    """

    def __init__(self, machines: Machines | None = None) -> None:
        self._machines = machines or Machines()
        if self._machines.file and not self._machines.places:
            raise UsageError(
                f"{self._machines.file} has no places for --fw-engine {LOCAL}: add [[place]], and "
                'below it command = ["ssh", "node1"]'
            )

    @property
    def joined_by(self) -> str:
        """What has a network that is there already; empty where one can be made."""
        return "the places of a file" if self._machines.places else ""

    def refuse_more(self, number: int) -> None:
        """This machine takes any; a file has as many places as it says."""
        places, file = self._machines.places, self._machines.file
        if places and len(places) < number:
            raise UsageError(
                f"a gang of {number} processes needs as many places, and {file} has {len(places)}: "
                "add places, or roles to a place"
            )

    def hosts(self, number: int, network: str) -> Hosts:
        """On the loopback interface, each in a network namespace of its own, or elsewhere."""
        if self._machines.places:
            refuse_network(network, self.joined_by)
            self.refuse_more(number)
            return _elsewhere(self._machines, number)
        return Shaped(number, network) if network != LOOPBACK else Loopback()


def refuse_network(network: str, whose: str) -> None:
    """Refuse any network but the one that there is.

    Args:
        network: as the toggle ``network`` calls it.
        whose: is the one that there is; empty if there is none yet.

    Raises:
        NetworkUnavailable: it is another one.
    """
    if whose and network != LOOPBACK:
        raise NetworkUnavailable(
            f"--fw-network {network} is made between processes of one machine, and {whose} have "
            f"their own: leave out --fw-network, or use --fw-engine {LOCAL} without --fw-places"
        )


def _elsewhere(machines: Machines, number: int) -> Arrivals:
    """Places of a file, the first of which are filled first."""
    places = machines.places[:number]
    with ExitStack() as unfinished:
        meeting = Meeting(machines.address)
        unfinished.callback(meeting.close)
        starters = []
        for rank, place in enumerate(places):
            asked = [*place.command, *command(place.python)]
            starters.append(Launched(asked, {}, f"{meeting.invitation(rank)}\n"))
            unfinished.callback(starters[-1].end)
        unfinished.pop_all()
    return Arrivals(meeting, starters, [place.address for place in places])


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
    return child(name, *work(framework, threads), prefix)


def engine(name: str, machines: Machines | None = None) -> Engine:
    """What starts gangs.

    Args:
        name: ``local``, or an entry point of the group :data:`~fwbench.options.values.ENGINES`.
        machines: where they run, as far as a file says it.

    Raises:
        UsageError: there is no such engine, it cannot be imported, or not be used here.
    """
    if name == LOCAL:
        return Local(machines)
    for point in metadata.entry_points(group=ENGINES, name=name):
        try:
            found: Engine = point.load()(machines or Machines())
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(
                f"the engine {name} ({point.value}) cannot be used: {error!r}; mend it, or use "
                f"--fw-engine {LOCAL}"
            ) from error
        return found
    raise unknown("engine", name, engines())


def check_places(
    name: str, places: Path | None, cells: Iterable[Cell], manifests: Mapping[str, Manifest]
) -> None:
    """Refuse gangs that have more processes than there are places, before anything is measured.

    Args:
        name: as of :func:`engine`.
        places: as of :func:`check`.
        cells: that will be measured.
        manifests: of their frameworks.

    Raises:
        UsageError: there are fewer places.
    """
    numbers = [
        len(composition_of(cell, manifests[cell.framework].coordinator).places)
        for cell in cells
        if cell.gang and not cell.gap
    ]
    if numbers:
        engine(name, Machines.read(places)).refuse_more(max(numbers))


def check(name: str, places: Path | None, networks: Iterable[str]) -> None:
    """Refuse an engine that cannot be used here, before anything is measured.

    Args:
        name: as of :func:`engine`.
        places: the file that says where roles run; None for this machine.
        networks: that are asked for, as the toggle ``network`` calls them.

    Raises:
        UsageError: it cannot be used, or not so.
    """
    used = engine(name, Machines.read(places))
    for network in networks:
        refuse_network(network, getattr(used, "joined_by", ""))
