"""The composition of a gang: the places of its processes, and the memory that they take."""

from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address

import psutil

from fwbench.errors import TooLargeToVerify
from fwbench.frameworks.member import SERVER, WORKER, Place
from fwbench.records.units import gibibytes
from fwbench.terms.replicas import LOOPBACK, WITH_SERVERS
from fwbench.workloads.grid import Cell

#: The share of free memory that a gang may take.
_AT_MOST = 0.9


@dataclass(frozen=True)
class Composition:
    """Properties that cases of one gang have in common."""

    #: Its name, as its own process knows it.
    framework: str
    strategy: str
    replicas: int
    threads: int
    servers: int = 0
    #: The framework's name for the process that it has in addition; empty if it has none.
    coordinator: str = ""
    #: That joins them, as the toggle ``network`` calls it.
    network: str = LOOPBACK
    #: Of the framework, as the controller has it; empty if it has none.
    version: str = ""
    #: Whether servers update parameters: those that do cannot go back to adding up.
    updating: bool = False

    @property
    def places(self) -> list[Place]:
        """The place of every process, without its host: workers, servers, and the coordinator."""
        counts = {WORKER: self.replicas, SERVER: self.servers, self.coordinator: 1}
        return [
            Place(rank, self.replicas, self.strategy, role=role, servers=self.servers)
            for role, count in counts.items()
            if role
            for rank in range(count)
        ]


def composition_of(
    cell: Cell, coordinator: str, threads: int = 1, version: str = ""
) -> Composition:
    """The composition of the gang of a cell with several replicas."""
    composition = Composition(
        cell.framework,
        cell.toggle("strategy"),
        cell.replicas,
        threads,
        network=cell.toggle("network"),
        version=version,
    )
    if composition.strategy not in WITH_SERVERS:
        return composition
    return replace(composition, servers=int(cell.toggle("servers")), coordinator=coordinator)


def refuse_too_large(composition: Composition, arrays_bytes: float) -> None:
    """Refuse a gang that does not fit into the machine's memory.

    Args:
        composition: of the gang; each role takes as much as this process has of its own, too.
        arrays_bytes: the size of the arrays that a role has at once.
    """
    memory = psutil.Process().memory_info()
    role_bytes = memory.rss - getattr(memory, "shared", 0) + arrays_bytes
    needed = len(composition.places) * role_bytes
    most = _AT_MOST * psutil.virtual_memory().available
    if needed > most:
        raise TooLargeToVerify(
            f"{composition.replicas} replicas take about {gibibytes(int(needed))} of memory, and "
            f"90 % of what is free are {gibibytes(int(most))}: ask for fewer --fw-replicas or a "
            "smaller --fw-size"
        )


def is_loopback(address: str) -> bool:
    """Return whether an address means the machine itself."""
    with suppress(ValueError):
        return ip_address(address).is_loopback
    return address == "localhost"
