"""Roles that Ray starts, in a cluster of three nodes that are all this machine."""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench.errors import NetworkUnavailable, UsageError
from fwbench.gangs.engines.places import Machine, Machines
from fwbench.gangs.pool import check, engine
from fwbench_extras import engines
from support.gangs import controller
from support.projects import Project, measuring
from support.tables import tabled

#: What a node takes: the least memory for objects that Ray allows, of which there will be none.
_NODE = {
    "num_cpus": 1,
    "object_store_memory": 80 * 2**20,
    "include_dashboard": False,
    "include_log_monitor": False,
}

#: What a node has ports for. A node that is to find out which of them its helpers took dies if they
#: take 15 s to say so, as on a busy machine.
_PORTS = (
    "dashboard_agent_listen_port",
    "metrics_agent_port",
    "metrics_export_port",
    "runtime_env_agent_port",
)

_SOON_S = 30.0

_CASES = measuring("all_reduce, sizes=(8,)", "from fwbench.workloads import all_reduce")

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def _node() -> dict[str, Any]:
    """The settings of one more node, with free ports."""
    with ExitStack() as taken:
        ends = [taken.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in _PORTS]
        ports = [end.getsockname()[1] for end in ends]
    return _NODE | dict(zip(_PORTS, ports, strict=True))


def _node_of(role: psutil.Process) -> int:
    """The process of Ray's node under which a role runs."""
    return next(parent.pid for parent in role.parents() if parent.name() == "raylet")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[pytest.MonkeyPatch]:
    """A cluster with three nodes, to which RAY_ADDRESS leads; none of its processes is left."""
    from ray.cluster_utils import Cluster

    request.getfixturevalue("fork_server")  # which stays, and is not of the cluster
    before = {*psutil.Process().children(recursive=True)}
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="r-") as folder:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray notes the address of a cluster below it, and expects the directory to be there.
        patch.setenv("RAY_TMPDIR", folder)
        Path(folder, "ray").mkdir()
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # what a node's interpreter imports
        ray_cluster = Cluster()
        try:
            ray_cluster.add_node(temp_dir=folder, no_monitor=True, **_node())
            for _ in range(2):
                ray_cluster.add_node(wait=False, temp_dir=folder, **_node())
            ray_cluster.wait_for_nodes()
            patch.setenv("RAY_ADDRESS", ray_cluster.address)
            yield patch
        finally:
            ray_cluster.shutdown()
            started = {*psutil.Process().children(recursive=True)} - before
            left = psutil.wait_procs(started, _SOON_S)[1]
        assert left == []


@needs_ray
@pytest.mark.serial
@pytest.mark.usefixtures("cluster")
def test_each_role_has_a_node_of_its_own(project: Project) -> None:
    """The record says what started them; a session with more roles than nodes measures nothing."""
    project.write("test_it.py", _CASES)
    requested = ("--fw=numpy", "-ofw_engine=ray", "--benchmark-json=run.json")
    result = project.run("--fw-replicas=3", *requested)
    result.assert_outcomes(passed=1)
    (record,) = json.loads((project.path / "run.json").read_text())["benchmarks"]
    gang = record["extra_info"]["fwbench"]["gang"]
    assert (gang["engine"], gang["replicas"], gang["network"]) == ("ray", 3, "loopback")
    result = project.run("--fw-replicas=2,4", *requested)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = "\n".join([*result.outlines, *result.errlines])
    assert "a gang of 4 processes needs as many nodes of Ray with a CPU, and the cluster has 3" in (
        output
    )


@needs_ray
@pytest.mark.serial
@pytest.mark.usefixtures("cluster")
def test_no_role_survives_its_controller() -> None:
    """Each is a child of another node's task; all end with the process that asked for them."""
    with controller(engine="ray") as (process, pids):
        roles = [psutil.Process(pid) for pid in pids]
        nodes = {_node_of(role) for role in roles}
        assert len(nodes) == len(roles) == 2
        family = [*roles, *psutil.Process(process.pid).children(recursive=True)]
        process.kill()
        process.wait()
        _, left = psutil.wait_procs(family, _SOON_S)
        assert left == []


@needs_ray
@tabled
def test_without_a_cluster_the_engine_is_refused(
    address: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UsageError, match=f"no Ray cluster was found {message}"):
        engine("ray").refuse_more(2)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r'is not installed: pip install "fwbench\[ray\]"'):
        check("ray", None, ())


def test_ray_has_nodes_and_a_network_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda _: True)
    machines = Machines(by_role=[Machine(["env"])], file="places.toml")
    with pytest.raises(UsageError, match="with -o fw_engine=ray Ray decides where roles run"):
        engines.Ray(machines)
    with pytest.raises(NetworkUnavailable, match="nodes of Ray have their own: leave out"):
        check("ray", None, ("100mbit",))
