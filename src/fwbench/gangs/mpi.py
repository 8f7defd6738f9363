"""Roles that mpiexec starts, on this machine or on those that it knows: MPI itself is not used."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack

from fwbench.errors import UsageError
from fwbench.gangs.arrivals import Arrivals
from fwbench.gangs.engines import refuse_network
from fwbench.gangs.machines import Machines
from fwbench.processes.launched import Launched
from fwbench.processes.meeting import INVITATION, Meeting
from fwbench.processes.usher import command

#: What Open MPI does only if told so: take a variable of the environment to other machines, bind no
#: process to a CPU, as with other engines, and take more processes than there are CPUs.
_OPEN_MPI = {
    "OMPI_MCA_mca_base_env_list": INVITATION,
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Mpi:
    """The processes of an ``mpiexec``.

    Args:
        machines: by which command it is called, and how this machine is reached.

    Raises:
        UsageError: the command is not there, or the file has places.
    """

    #: What has a network that is there already.
    joined_by = "processes of MPI"

    def __init__(self, machines: Machines) -> None:
        machines.refuse_places("mpi", "mpiexec (by its hostfile, or Slurm)")
        self._machines = machines
        program = machines.mpiexec[0]
        if shutil.which(program) is None:
            raise UsageError(
                f"--fw-engine mpi starts replicas by {program}, which is not there: install Open "
                "MPI or MPICH, name another command in the file of --fw-places (mpiexec = "
                '["srun"]), or use --fw-engine local'
            )

    def refuse_more(self, number: int) -> None:
        """Only mpiexec knows how many it can start; it says so when a gang starts."""

    def hosts(self, number: int, network: str) -> Arrivals:
        """Processes of one ``mpiexec``."""
        refuse_network(network, self.joined_by)
        with ExitStack() as unfinished:
            meeting = Meeting(self._machines.address)
            unfinished.callback(meeting.close)
            own = {name: value for name, value in _OPEN_MPI.items() if name not in os.environ}
            variables = own | {INVITATION: str(meeting.invitation())}
            asked = [*self._machines.mpiexec, "-n", str(number), *command()]
            starter = Launched(asked, variables)
            unfinished.pop_all()
        return Arrivals(meeting, [starter])
