"""Gangs in networks of their own: addresses, rates, and that nothing is left of them.

The kernel needs network namespaces and token buckets, and a user who may make them.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import GangFailed, NetworkUnavailable
from fwbench.gangs import network
from fwbench.gangs.gang import Gang
from fwbench.gangs.launch import Shaped
from fwbench.gangs.network import ShapedNetwork
from fwbench.gangs.shares import Task
from fwbench.processes import namespace
from fwbench.processes.namespace import Namespace
from fwbench.terms.replicas import Link
from support.gangs import controller, started
from support.projects import Project, measuring
from support.tables import tabled

_LINK = Link(100_000_000)
_TASK = asdict(Task("all_reduce", 1000, "cpu", "eager", "float32", sparse=False))
_PATIENCE_S = 60.0

needs_network = pytest.mark.skipif(
    bool(network.missing(_LINK)), reason=f"no shaped networks here: {network.missing(_LINK)}"
)


def _namespaces(pids: list[int]) -> set[str]:
    namespaces = set()
    for pid in pids:
        with suppress(OSError):  # it has ended, or is another user's
            namespaces.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return namespaces


def _left(namespaces: set[str]) -> set[str]:
    """The namespaces that still have a process or a name, after a while."""
    until_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s:
        every = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        named = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        left = namespaces & (_namespaces(every) | {name for name in namespaces if name in named})
        if not left:
            return left
        time.sleep(0.05)
    return left


def _here() -> tuple[str, str]:
    """The interfaces and the queues of this process' own namespace."""
    return tuple(  # type: ignore[return-value]
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for command in (["ip", "-br", "link"], ["tc", "qdisc", "show"])
    )


def _namespaces_of(gang: Gang) -> set[str]:
    """The network namespaces of a gang and of its switch, none of which is this process'."""
    assert isinstance(gang._hosts, Shaped)
    shaped = gang._hosts
    holders = [shaped._switch.pid, *(place.pid for place in shaped._places)]
    namespaces = _namespaces([*gang.pids, *holders])
    assert len(namespaces) == len(gang.pids) + 1
    assert not namespaces & _namespaces([os.getpid()])
    return namespaces


@pytest.fixture
def gang() -> Iterator[Gang]:
    """Two workers at links of 100 Mbit/s that have built an all-reduce."""
    made = started(network="100mbit")
    made.ask("bind", _TASK, limit_s=_PATIENCE_S, doing="building")
    yield made
    made.close()


def _round(gang: Gang, limit_s: float = _PATIENCE_S) -> list[Any]:
    return gang.ask("round", 3, limit_s=limit_s, doing="taking steps")


@needs_network
def test_a_cut_link_ends_the_gang_and_nothing_is_left(gang: Gang) -> None:
    """They work, until one is cut off: only the limit notices it, and links are silent."""
    before, namespaces = _here(), _namespaces_of(gang)
    assert [greeting["address"].rpartition(":")[0] for greeting in gang.greetings] == [
        *("10.77.0.1", "10.77.0.2")
    ]
    gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
    assert [answer["sent_bytes"] for answer in _round(gang)] == [12_000, 12_000]
    assert isinstance(gang._hosts, Shaped)
    assert (gang._hosts.traffic_bytes(0) or 0) > 4 * 12_000
    gang._hosts.cut(1)
    message = (
        r"worker 0 of 2 and worker 1 of 2 did not answer within 1 s while taking steps: .* is cut"
        r".*moved in its last 0.5 s: worker 0 of 2: .* B, worker 1 of 2: 0 B"
    )
    with pytest.raises(GangFailed, match=message):
        _round(gang, limit_s=1.0)
    assert _left(namespaces) == set()
    assert _here() == before


@needs_network
def test_a_killed_worker_leaves_no_network(gang: Gang) -> None:
    namespaces = _namespaces_of(gang)
    os.kill(gang.pids[0], signal.SIGKILL)
    with pytest.raises(GangFailed, match="worker 0 of 2 was killed by SIGKILL"):
        _round(gang)
    assert _left(namespaces) == set()


@needs_network
@pytest.mark.parametrize("group", [False, True], ids=["alone", "with its group"])
def test_a_killed_controller_leaves_no_network(group: bool) -> None:
    """Killed alone, which gives it no time for anything, or with its session as by Ctrl-C."""
    with controller("100mbit") as (process, pids):
        namespaces = _namespaces(pids)
        assert len(namespaces) == 2
        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
        assert _left(namespaces) == set()


@needs_network
def test_both_ends_of_a_link_have_its_rate() -> None:
    """So it is as fast in either direction; a queue lasts 0.4 s."""
    shaped = ShapedNetwork(_LINK, 1)
    try:
        shown = [
            json.loads(
                subprocess.check_output([*prefix, "tc", "-j", "qdisc", "show", "dev", device])
            )
            for prefix, device in ((shaped.prefix(0), "eth0"), (shaped._switch.prefix, "port0"))
        ]
    finally:
        shaped.close()
    for (queue,) in shown:
        assert queue["kind"] == "tbf"
        assert queue["options"]["rate"] == 12_500_000
        assert 390_000 <= queue["options"]["lat"] <= 410_000


def test_a_delay_comes_before_the_rate() -> None:
    """At a replica's end; the switch has the rate alone."""
    queues = network._queues(Link(100_000_000, 0.0005))
    assert [*queues] == ["netem", "tbf"]
    assert queues["netem"] == ["qdisc add dev {} root handle 1: netem delay 500us limit 350000"]
    assert queues["tbf"][0].startswith("qdisc add dev {} parent 1:1 tbf rate 100000000bit burst ")
    assert [*network._queues(_LINK)] == ["tbf"]


@needs_network
def test_a_session_records_its_network(project: Project) -> None:
    """In the id, and as facts; the link is what limits, and the straggler is said."""
    imports = "from fwbench.workloads import all_reduce"
    project.write("test_it.py", measuring("all_reduce, sizes=(65536,)", imports))
    result = project.run(
        *("--fw-replicas=2", "--fw-network=0.1gbit", "--fw-toggle=straggler=none,1@1ms"),
        *("--benchmark-json=run.json", "--benchmark-max-time=0.1"),
    )
    result.assert_outcomes(passed=2)
    run = json.loads((project.path / "run.json").read_text())
    names = [entry["name"].partition("strategy:")[2] for entry in run["benchmarks"]]
    assert names == ["allreduce-network:100mbit]", "allreduce-network:100mbit-straggler:1@1ms]"]
    for record, late in zip(run["benchmarks"], (None, "1@1ms"), strict=True):
        gang = record["extra_info"]["fwbench"]["gang"]
        assert gang["network"] == "100mbit"
        assert gang["link_bytes_per_s"] == 12.5e6
        assert (
            gang["link_utilization"] > 0.0
        )  # a little above 1 at times: a bucket lets bursts pass
        assert gang.get("straggler") == late


@pytest.fixture
def unasked() -> Iterator[None]:
    network.missing.cache_clear()
    yield
    network.missing.cache_clear()


def _install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.usefixtures("unasked")
@tabled
def test_a_system_without_namespaces(
    unshare: str | None, user: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what is missing and how to get it."""
    if unshare is not None:
        _install(tmp_path, "unshare", unshare)
        _install(tmp_path, "nsenter", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setattr(namespace.os, "geteuid", lambda: user)
    with pytest.raises(NetworkUnavailable, match=message):
        network.refuse_impossible(["100mbit"])
    network.refuse_impossible(["loopback"])


@pytest.mark.usefixtures("unasked")
@tabled
def test_a_kernel_without_a_queue(kind: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def configure(_: Any, __: str, commands: list[str]) -> None:
        if any(f" {kind} " in command for command in commands):
            raise NetworkUnavailable("tc: Error: Specified qdisc kind is unknown.")

    monkeypatch.setattr(Namespace, "__init__", lambda self, beside=None: None)
    monkeypatch.setattr(Namespace, "close", lambda self: None)
    monkeypatch.setattr(Namespace, "pid", 1)
    monkeypatch.setattr(Namespace, "configure", configure)
    with pytest.raises(NetworkUnavailable, match=message):
        network.refuse_impossible(["100mbit+1ms"])
