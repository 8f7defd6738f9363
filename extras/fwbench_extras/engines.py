"""The engines ``mpi`` and ``ray``: replicas that mpiexec or a Ray cluster starts.

What replicas exchange goes through neither: they connect to each other as anywhere.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from importlib.util import find_spec

from fwbench.errors import UsageError
from fwbench.gangs.engines.launcher import command
from fwbench.gangs.engines.places import Machines, RemoteHosts, Starter
from fwbench.gangs.engines.rendezvous import TICKET, Rendezvous
from fwbench.gangs.launch import refuse_network
from fwbench.processes.command import ask
from fwbench.processes.process import ending

#: How long a cluster may take to refuse a gang.
_REFUSAL_S = 120.0

#: What Open MPI does on request only: take a variable of the environment to other machines, bind no
#: process to a CPU, as with other engines, and take more processes than there are CPUs.
_OPEN_MPI = {
    "OMPI_MCA_mca_base_env_list": TICKET,
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Mpi:
    """The processes of an ``mpiexec``.

    Args:
        machines: the command of mpiexec, and the address of this machine.

    Raises:
        UsageError: the command is not installed, or the file has places.
    """

    #: What has a network already, for messages.
    joined_by = "processes of MPI"

    def __init__(self, machines: Machines) -> None:
        machines.refuse_places("mpi", "mpiexec (by its hostfile, or Slurm)")
        self._machines = machines
        program = machines.mpiexec[0]
        if shutil.which(program) is None:
            raise UsageError(
                f"-o fw_engine=mpi starts replicas by {program}, which is not there: install Open "
                "MPI or MPICH, name another command in the file of fw_places (mpiexec = "
                '["srun"]), or use -o fw_engine=local'
            )

    def refuse_more(self, number: int) -> None:
        """Refuse nothing: only mpiexec knows how many processes it can start."""

    def hosts(self, number: int, network: str) -> RemoteHosts:
        """Hosts of the processes of one ``mpiexec``."""
        refuse_network(network, self.joined_by)
        with ExitStack() as unfinished:
            rendezvous = Rendezvous(self._machines.address, number)
            unfinished.callback(rendezvous.close)
            defaults = {name: value for name, value in _OPEN_MPI.items() if name not in os.environ}
            variables = defaults | {TICKET: str(rendezvous.ticket())}
            words = [*self._machines.mpiexec, "-n", str(number), *command()]
            starter = Starter(words, variables)
            unfinished.pop_all()
        return RemoteHosts(rendezvous, [starter])


class Ray:
    """The nodes of a Ray cluster, of which this machine is one.

    A process of its own talks to the cluster (:mod:`fwbench_extras.ray_nodes`): the
    controller of a gang has none of Ray's threads and libraries.

    Raises:
        UsageError: Ray is not installed, or the file has places.
    """

    #: What has a network already, for messages.
    joined_by = "nodes of Ray"

    def __init__(self, machines: Machines) -> None:
        machines.refuse_places("ray", "Ray")
        if find_spec("ray") is None:
            raise UsageError(
                "-o fw_engine=ray starts replicas by Ray, which is not installed: pip install "
                '"fwbench[ray]", or use -o fw_engine=local'
            )
        self._machines = machines

    def refuse_more(self, number: int) -> None:
        """Refuse more roles than the cluster has nodes."""
        answer = ask(_nodes(number), timeout_s=_REFUSAL_S)
        if answer.status:
            # Ray's own log comes first.
            reason = answer.errors.strip().rpartition("fwbench: ")[2]
            raise UsageError(reason or f"the process that talks to Ray {ending(answer.status)}")

    def hosts(self, number: int, network: str) -> RemoteHosts:
        """Nodes of the cluster, one for each role."""
        refuse_network(network, self.joined_by)
        with ExitStack() as unfinished:
            rendezvous = Rendezvous(self._machines.address, number)
            unfinished.callback(rendezvous.close)
            starter = Starter(_nodes(number), {}, f"{rendezvous.ticket()}\n")
            unfinished.pop_all()
        return RemoteHosts(rendezvous, [starter])


def _nodes(number: int) -> list[str]:
    return [sys.executable, "-P", "-m", "fwbench_extras.ray_nodes", str(number)]
