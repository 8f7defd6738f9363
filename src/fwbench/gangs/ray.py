"""Roles that Ray starts, each on a node of its own; what they exchange does not go through it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from importlib.util import find_spec

from fwbench.errors import UsageError
from fwbench.gangs.arrivals import Arrivals
from fwbench.gangs.engines import refuse_network
from fwbench.gangs.machines import Machines
from fwbench.processes.launched import Launched, refusal
from fwbench.processes.meeting import Meeting


class Ray:
    """The nodes of a Ray cluster, of which this machine is one.

    A process of its own talks to the cluster (:mod:`fwbench.processes.nodes`): the controller of a
    gang has none of Ray's threads, and none of its libraries beside the framework's.

    Args:
        machines: how this machine is reached.

    Raises:
        UsageError: Ray is not installed, or the file has places.
    """

    #: What has a network that is there already.
    joined_by = "nodes of Ray"

    def __init__(self, machines: Machines) -> None:
        machines.refuse_places("ray", "Ray")
        if find_spec("ray") is None:
            raise UsageError(
                "--fw-engine ray starts replicas by Ray, which is not installed: pip install "
                '"fwbench[ray]", or use --fw-engine local'
            )
        self._machines = machines

    def refuse_more(self, number: int) -> None:
        """Ask the cluster how many nodes it has."""
        if said := refusal(_command(number)):
            # What comes before is Ray's own log.
            raise UsageError(said.rpartition("fwbench: ")[2])

    def hosts(self, number: int, network: str) -> Arrivals:
        """Nodes of the cluster, as many as there are processes."""
        refuse_network(network, self.joined_by)
        with ExitStack() as unfinished:
            meeting = Meeting(self._machines.address)
            unfinished.callback(meeting.close)
            starter = Launched(_command(number), {}, f"{meeting.invitation()}\n")
            unfinished.pop_all()
        return Arrivals(meeting, [starter])


def _command(number: int) -> list[str]:
    return [sys.executable, "-P", "-m", "fwbench.processes.nodes", str(number)]
