"""What gangs are composed of, and the places of their processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from fwbench.frameworks.member import SERVER, WORKER
from fwbench.grid import Cell
from fwbench.terms.link import LOOPBACK
from fwbench.terms.strategy import WITH_SERVERS


class Place(NamedTuple):
    """One process of a gang.

    Attributes:
        role: what it is.
        rank: which one of this role, from 0.
        name: for messages: ``worker 1 of 2``.
    """

    role: str
    rank: int
    name: str


@dataclass(frozen=True)
class Composition:
    """What cases must have in common to be done by one gang.

    Attributes:
        framework: its name, as its own process knows it.
        strategy: how replicas agree.
        replicas: how many there are.
        threads: of each.
        servers: how many parameter servers there are.
        coordinator: what the framework calls the process that it has in addition; empty if it has
            none.
        network: what joins them, as the toggle ``network`` calls it.
        version: of the framework, as the controller has it; empty where it has none.
        updating: whether servers update what they have: those that do cannot be told to add up
            again.
    """

    framework: str
    strategy: str
    replicas: int
    threads: int
    servers: int = 0
    coordinator: str = ""
    network: str = LOOPBACK
    version: str = ""
    updating: bool = False

    @property
    def places(self) -> list[Place]:
        """Every process: workers, servers, and what coordinates them."""
        counts = {WORKER: self.replicas, SERVER: self.servers}
        places = [
            Place(role, rank, f"{role} {rank} of {count}")
            for role, count in counts.items()
            for rank in range(count)
        ]
        if self.coordinator:
            places.append(Place(self.coordinator, 0, f"the {self.coordinator}"))
        return places


def composition_of(
    cell: Cell, coordinator: str, threads: int = 1, version: str = ""
) -> Composition:
    """What the gang of a cell is made of.

    Args:
        cell: of several replicas.
        coordinator: what its framework calls the process that gangs with servers have in addition;
            empty if there is none.
        threads: of each process.
        version: of the framework.
    """
    own = Composition(
        cell.framework,
        cell.toggle("strategy"),
        cell.replicas,
        threads,
        network=cell.toggle("network"),
        version=version,
    )
    if own.strategy not in WITH_SERVERS:
        return own
    return replace(own, servers=int(cell.toggle("servers")), coordinator=coordinator)
