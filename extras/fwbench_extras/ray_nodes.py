"""The command that starts processes on the nodes of a Ray cluster, as mpiexec does by MPI.

``python -m fwbench_extras.ray_nodes N`` finds N nodes, starts a launcher on each
(:mod:`fwbench.gangs.engines.launcher`), and runs as long as they do. The first line of its standard
input is their ticket; without a ticket it only checks that there are enough nodes.

Ray: https://docs.ray.io/en/latest/ray-core/scheduling/placement-group.html
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from fwbench.errors import FwbenchError, GangFailed, UsageError
from fwbench.gangs.engines.launcher import command
from fwbench.processes import process

#: How long the cluster may take to be reached, and to find room on its nodes.
_REACH_S = 5.0
_ROOM_S = 30.0

_HOW = (
    "start one on every machine (ray start --head on the first, ray start --address=HOST:PORT on "
    "the others), set RAY_ADDRESS=HOST:PORT if there are several, or use -o fw_engine=local"
)


def main() -> None:
    """Entry point; argument of the process: how many nodes."""
    process.initialize()
    number, ticket = int(sys.argv[1]), sys.stdin.readline().strip()
    try:
        with _cluster():
            _refuse_more(number)
            if ticket:
                _start(number, ticket)
    except FwbenchError as error:
        sys.exit(f"fwbench: {error}")


@contextmanager
def _cluster() -> Iterator[None]:
    """Connect to the cluster of RAY_ADDRESS, or to the one that runs on this machine.

    Raises:
        UsageError: there is none.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    whose = f"RAY_ADDRESS={address}" if address else "this machine"
    try:
        _reach(address)
        # Ray's messages go to its logs; errors are reported here.
        ray.init("auto", logging_level="CRITICAL", log_to_driver=False)
    except Exception as error:
        raise UsageError(
            f"no Ray cluster was found by {whose} ({_first_line(error)}): {_HOW}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Connect to a cluster's address, which Ray itself would try for a minute.

    Raises:
        OSError: no process listens there.
        ValueError: it is not HOST:PORT.
    """
    if address in ("", "auto"):
        return
    host, _, port = address.rpartition(":")
    if "/" in host or not port.isdigit():
        raise ValueError("it is not HOST:PORT")
    socket.create_connection((host, int(port)), _REACH_S).close()


def _first_line(error: Exception) -> str:
    return (str(error) or repr(error)).strip().splitlines()[0].rstrip(".")


def _refuse_more(number: int) -> None:
    """Refuse more processes than there are nodes with a CPU.

    Raises:
        UsageError: there are too few.
    """
    alive = [node for node in ray.nodes() if node["Alive"]]
    usable = [node for node in alive if node["Resources"].get("CPU", 0) >= 1]
    if len(usable) < number:
        raise UsageError(
            f"a gang of {number} processes needs as many nodes of Ray with a CPU, and the cluster "
            f"has {len(usable)}: add nodes (ray start --address=HOST:PORT), or ask for fewer "
            "--fw-replicas"
        )


def _start(number: int, ticket: str) -> None:
    """Start a launcher on each of ``number`` nodes, and wait until all have ended.

    Raises:
        GangFailed: the nodes are busy, or a process ended before its time.
    """
    group = placement_group([{"CPU": 1}] * number, strategy="STRICT_SPREAD")
    try:
        if not group.wait(_ROOM_S):
            raise GangFailed(
                f"Ray found no free CPU on {number} nodes within {_ROOM_S:g} s: others use them "
                "(see ray status)"
            )
        running = [
            _on(group, rank).remote(command()[1:], f"{ticket} {rank}\n") for rank in range(number)
        ]
        while running:
            ended, running = ray.wait(running)
            for task in ended:
                if failure := _failure(task):
                    raise GangFailed(failure)
    finally:
        remove_placement_group(group)


def _on(group: PlacementGroup, rank: int) -> ray.remote_function.RemoteFunction:
    """A task on a node of a group, never retried: its process is expected once."""
    return ray.remote(_run).options(
        num_cpus=1, max_retries=0, scheduling_strategy=PlacementGroupSchedulingStrategy(group, rank)
    )


def _failure(task: ray.ObjectRef) -> str:
    """Failure of a task; empty if it did not fail."""
    try:
        return ray.get(task)
    except ray.exceptions.RayError as error:
        return f"Ray lost a process: {_first_line(error)}"


def _run(arguments: Sequence[str], given: str) -> str:
    """Run a command of the interpreter of a node, and return how it failed, if it did.

    Ray takes this function to the node by value, so that the message is this one where fwbench is
    not installed there.
    """
    # Ray's processes have a niceness of 15, and would wait for other programs there.
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    ended = subprocess.run(
        [sys.executable, *arguments], input=given, stderr=subprocess.PIPE, text=True, check=False
    )
    if ended.returncode == 0:
        return ""
    return f"{sys.executable} on {socket.gethostname()} failed: {ended.stderr.strip()}"


if __name__ == "__main__":
    main()
