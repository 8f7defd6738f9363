"""Gangs for tests: one whose roles are scripted, and rings within one process."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fwbench import cli
from fwbench.frameworks.member import Place
from fwbench.frameworks.numpy.replicas import Ring
from fwbench.gangs.gang import Composition, Gang, GangTimeouts
from fwbench.gangs.launch import Local
from fwbench.terms.replicas import LOOPBACK, link_of
from fwbench.testing import HandClock

#: Where tests wait for what never comes they wait as long as this.
SOON = GangTimeouts(start_s=300.0, join_s=60.0, least_s=1.0, times=20.0)


def composition(replicas: int = 2, framework: str = "numpy", **more: Any) -> Composition:
    """The composition of a gang; one thread each."""
    return Composition(framework, more.pop("strategy", "allreduce"), replicas, 1, **more)


def installed(folder: Path, name: str, value: str, *, group: str = "fwbench.frameworks") -> None:
    """Install a framework or an engine into a folder, for processes that have it on their path.

    Args:
        value: what it points to, ``module:Class``.
    """
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")


def started(
    replicas: int = 2, framework: str = "numpy", limits: GangTimeouts = SOON, **more: Any
) -> Gang:
    """A gang of real processes, to be closed."""
    gang = Gang(composition(replicas, framework, **more), Local(), limits)
    gang.start()
    return gang


G = TypeVar("G", bound=Gang)


@contextmanager
def running(gang: G) -> Iterator[G]:
    """Start a gang, and close it at the end of the block."""
    gang.start()
    try:
        yield gang
    finally:
        gang.close()


class Meddled(Gang):
    """A gang with which something is done before its roles join each other.

    Args:
        meddle: does it; gets the addresses at which roles join, and returns other ones.
        join_s: how long they may take.
    """

    def __init__(
        self,
        meddle: Callable[[Gang, list[str]], list[str]],
        requested: Composition | None = None,
        join_s: float = 1.0,
    ) -> None:
        super().__init__(requested or composition(), Local(), replace(SOON, join_s=join_s))
        self._meddle = meddle
        self.every_pid: Sequence[int] = ()

    def ask(self, kind: str, *values: Any, **how: Any) -> list[Any]:
        """Ask as usual; when all roles have started, something is done."""
        if kind == "join":
            self.every_pid = self.pids
            values = (self._meddle(self, values[0]),)
        return super().ask(kind, *values, **how)


@dataclass
class ScriptedGang:
    """A gang without processes, whose answers are given and whose messages take time.

    Attributes:
        clock: of the controller.
        control_s: what each question and its answers take.
        step_s: what a step takes by each worker's clock.
        sent_bytes: what each worker sends in a step.
        answers: of other questions than rounds, by kind.
        alone: what is different in rounds without an exchange.
        asked: all questions, with their first value.
        alive: whether no role has ended.
    """

    composition: Composition = field(default_factory=composition)
    clock: HandClock = field(default_factory=HandClock)
    control_s: float = 0.05
    step_s: Sequence[float] = (2.0**-8, 2.0**-7)
    sent_bytes: int = 10**7
    answers: dict[str, Any] = field(default_factory=dict)
    alone: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[Any, ...]] = field(default_factory=list)
    alive: bool = True
    start_s: float = 1.5
    limits: GangTimeouts = SOON
    serving: Sequence[Any] = ()
    times_used: int = 0

    def usage(self) -> list[dict[str, Any]]:
        """The usage of processes without steps: 1 s and 6,400 bytes more every time."""
        self.times_used += 1
        usage = {"cpu_s": 1.0, "preempted": 1, "sent_bytes": 6400}
        return [
            {key: value * self.times_used for key, value in usage.items()} for _ in self.serving
        ]

    @property
    def network(self) -> str:
        """The network of the composition."""
        return self.composition.network

    @property
    def greetings(self) -> list[dict[str, Any]]:
        """The answer of every role to ``prepare``."""
        return [{"host": "here", "cpus": 2, "threads": 1} for _ in self.step_s]

    @property
    def all_greetings(self) -> list[dict[str, Any]]:
        """The answers of all roles, servers included."""
        return [*self.greetings, *(greeting for _, greeting in self.serving)]

    @property
    def is_alive(self) -> bool:
        return self.alive

    def start(self) -> None:
        self.requests.append(("start",))

    def ask(self, kind: str, *values: Any, **_: Any) -> list[Any]:
        """The given answers; for rounds, the seconds of their steps."""
        self.clock.spend(self.control_s)
        self.requests.append((kind, *values))
        if kind in ("round", "alone"):
            steps = values[0]
            used = {"cpu_s": 0.0, "preempted": 0, "sent_bytes": self.sent_bytes * steps}
            if kind == "alone":
                used |= {"sent_bytes": 0, "trained": True, **self.alone}
            return [{"seconds": step_s * steps, **used} for step_s in self.step_s]
        return list(self.answers.get(kind, [{"sent_bytes": None}] * len(self.step_s)))

    def kill(self) -> None:
        self.alive = False
        self.requests.append(("kill",))

    def close(self) -> None:
        self.alive = False
        self.requests.append(("close",))


def in_ring(replicas: int, do: Callable[[Ring], Any]) -> list[Any]:
    """Call a function in every replica of a ring, each in a thread, and return the results."""
    rings = [Ring(Place(rank, replicas, "allreduce", "127.0.0.1")) for rank in range(replicas)]
    addresses = [ring.address for ring in rings]

    def joined(ring: Ring) -> Any:
        ring.join(addresses)
        return do(ring)

    with ThreadPoolExecutor(replicas) as threads:
        try:
            return [*threads.map(joined, rings)]
        finally:
            for ring in rings:
                ring.close()


#: What a process that has a gang runs; its arguments are the network, the engine and its places.
_CONTROLLER = """
import sys
from pathlib import Path
from fwbench.gangs.pool import engine
from fwbench.gangs.gang import Gang
from support.gangs import SOON, composition
network, name, places = sys.argv[1:]
chosen = engine(name, Path(places) if places else None)
gang = Gang(composition(network=network), chosen, SOON)
gang.start()
print(*gang.pids, flush=True)
sys.stdin.read()
"""


@contextmanager
def controller(
    network: str = LOOPBACK, engine: str = "local", places: str = ""
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with a gang, in a session of its own, and the numbers of its workers."""
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", _CONTROLLER, network, engine, places],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield process, [int(pid) for pid in process.stdout.readline().split()]
    finally:
        process.kill()
        process.communicate()


def out(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """The output of a command that must exit with this status."""
    assert cli.main(arguments) == status
    captured = capsys.readouterr()
    printed, silent = (captured.err, captured.out) if status else (captured.out, captured.err)
    assert silent == ""
    return printed


def gang(
    replicas: int = 2, step_s: float = 1e-3, host: str = "here", **facts: Any
) -> dict[str, Any]:
    """The facts of a gang whose replicas all take the same time.

    Args:
        replicas: how many.
        facts: others than an all-reduce of 4 MB over loopback has.
    """
    size_bytes = 4e6
    rank = {
        "host": host,
        "cpus": 2,
        "threads": 1,
        "step_s": step_s,
        "p90_s": step_s,
        "max_s": step_s,
        "cpu_s": step_s / 2,
        "preempted": 0,
        "sent_bytes": 2 * (replicas - 1) / replicas * size_bytes,
    }
    link = link_of(facts.get("network", LOOPBACK))
    return {
        "replicas": replicas,
        "strategy": "allreduce",
        "servers": 0,
        "engine": "local",
        "network": "loopback",
        "oversubscribed": False,
        "start_s": 1.5,
        "steps_per_round": 10,
        "ranks": [{**rank, "rank": number} for number in range(replicas)],
        "serving": [],
        "skew": 0.0,
        "least_bytes_per_step": 2 * (replicas - 1) * size_bytes,
        "bytes_per_step": 2 * (replicas - 1) * size_bytes,
        "bus_bytes_per_s": 2 * (replicas - 1) / replicas * size_bytes / step_s,
        "equal_work": True,
        "verified": {"steps": 3},
        **({} if link is None else {"link_bytes_per_s": link.bytes_per_s}),
        **facts,
    }
