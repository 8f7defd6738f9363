"""A session with a gang that a fault befalls: what it runs, and what must be true afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from watched import Watched, settled

#: A gang that takes less than this processor time does not build any more.
_IDLE_S = 0.05

_END_WITHIN_S = 300.0
_GONE_WITHIN_S = 5.0
_TAIL_CHARACTERS = 600

#: Ends of a session: as pytest has it when cases fail, and when it is interrupted.
_FAILED, _INTERRUPTED = 1, 2


@dataclass(frozen=True)
class Fault:
    """A fault of a gang.

    Attributes:
        kind: what is done.
        phase: the question to all roles while which it is done; empty for answers and addresses
            that are tampered with.
        role: to which one, from the first worker on.
        message: a part of what the failure must say, with the name of the role.
    """

    kind: str
    phase: str
    role: int = 1
    message: str = "{name}"

    def __str__(self) -> str:
        return f"{self.kind} at {self.phase}" + (f", role {self.role}" if self.role != 1 else "")

    @property
    def is_seen(self) -> bool:
        """True if it shows by itself, long before any limit."""
        return self.kind not in ("stopped", "cut", "port taken")

    @property
    def ends_session(self) -> bool:
        """True if no further case is to be done."""
        return self.kind == "interrupted"


@dataclass(frozen=True)
class Tried:
    """A gang that faults befall.

    Attributes:
        options: of pytest.
        workload: that its cases are of.
        roles: how many processes it has.
        has_port: whether its first worker or its last role is told to others by a port that it
            opens later.
        takes_steps: which roles do, and so wait for a link that is cut.
        has_links: whether its roles are where fwbench can join them by links that can be cut.
    """

    options: tuple[str, ...]
    workload: str = "mlp_step"
    roles: int = 2
    has_port: bool = True
    takes_steps: str = "worker"
    has_links: bool = True


#: The main process says who it is, to what runs in its worker.
_CONFTEST = """
import os

def pytest_configure():
    os.environ.setdefault("FWBENCH_FAULTS_SESSION", str(os.getpid()))
"""

_SUITE = """
import json, os, signal, socket, threading, time
from pathlib import Path
import pytest
from fwbench.gangs import gang
from fwbench.workloads import {workload}

fault = json.loads(Path("fault.json").read_text())
here, ask, rounds = Path(__file__).parent, gang.Gang.ask, [0]
taken = socket.create_server(("127.0.0.1", 0))


def strike(struck, how):
    quiet_s, role = how.get("quiet_s", how["limit_s"]), struck._roles[fault["role"]]
    limit_s = min(how["limit_s"], quiet_s)
    record = {{"limit_s": limit_s, "pids": struck.pids, "name": role.name, "at_s": time.time()}}
    (here / "struck.tmp").write_text(json.dumps(record))
    (here / "struck.tmp").rename(here / "struck.json")
    if fault["kind"] in ("killed", "stopped"):
        os.kill(role.pid, signal.SIGKILL if fault["kind"] == "killed" else signal.SIGSTOP)
    elif fault["kind"] == "cut":
        struck._hosts.cut(fault["role"])
    elif fault["kind"] == "controller killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault["kind"] == "interrupted":
        os.kill(int(os.environ["FWBENCH_FAULTS_SESSION"]), signal.SIGINT)


def struck(self, kind, *values, **how):
    if (here / "second").exists():
        return ask(self, kind, *values, **how)
    if kind == "round":
        rounds[0] += 1
    now = kind == fault["phase"] and (kind != "round" or rounds[0] == 4)
    if now and fault["kind"] == "port taken":
        strike(self, how)
        port = taken.getsockname()[1]
        values = ([host and f"{{host.rpartition(':')[0]}}:{{port}}" for host in values[0]],)
    elif now and fault["kind"] == "other version":
        answers = ask(self, kind, *values, **how)
        strike(self, how)
        answers[fault["role"]]["versions"][self.composition.framework] = "0.1"
        return answers
    elif now:
        # A little later, as it has been asked by then; before the roles meet at once.
        wait_s = {{"join": 0.0, "prepare": 0.3, "bind": 0.0, "round": 0.02}}[kind]
        if wait_s:
            threading.Timer(wait_s, strike, (self, how)).start()
        else:
            strike(self, how)
    return ask(self, kind, *values, **how)


gang.Gang.ask = struck


@pytest.mark.fwbench({workload}, sizes=(64, 128))
def test_it(case):
    if (here / "struck.json").exists():
        (here / "second").touch()
    case.measure()
"""

_ARGUMENTS = (
    *("-p", "no:randomly", "-p", "no:cacheprovider", "-v", "--color=no", "--fw-threads=1"),
    *("--benchmark-max-time=0.2", "--fw-warmup=0.1", "--fw-replicas=2", "--fw-dtype=float32"),
)


class Session(Watched):
    """A session with a fault.

    Args:
        folder: an empty one.
        gang: that its cases have.
        fault: that befalls it.
    """

    def __init__(self, folder: Path, gang: Tried, fault: Fault) -> None:
        self._fault = fault
        network = ["--fw-network=100mbit"] if fault.kind == "cut" else []
        super().__init__(
            folder,
            {
                "conftest.py": _CONFTEST,
                "test_it.py": _SUITE.format(workload=gang.workload),
                "fault.json": json.dumps(vars(fault)),
            },
            (*_ARGUMENTS, *gang.options, *network),
        )

    @property
    def printed(self) -> str:
        """The printed text, without the margin of failures."""
        return super().printed.replace("\nE   ", "\n")

    def suffer(self) -> tuple[float, float]:
        """Wait for the end; how long the gang was there after the fault, and how long it may be."""
        until_s = time.monotonic() + _END_WITHIN_S
        struck = self.folder / "struck.json"
        self.wait(struck.exists, until_s)
        if not struck.exists():
            return 0.0, 0.0
        self.struck: dict[str, Any] = json.loads(struck.read_text(encoding="utf-8"))
        self._used_s = 0.0
        self.wait(self._is_gone, until_s)
        gone_s = time.time() - self.struck["at_s"]
        self.wait(lambda: False, until_s)
        return gone_s, self.struck["limit_s"]

    def _is_gone(self) -> bool:
        """True if the gang has ended; as long as it builds, the fault begins again."""
        pids = self.struck["pids"]
        if self._fault.phase == "bind":
            used_s = sum(map(_used_s, pids))
            if used_s > self._used_s + _IDLE_S:
                self._used_s, self.struck["at_s"] = used_s, time.time()
        return not any(map(_runs, pids))

    def problems(self) -> Iterator[str]:
        """Problems after the end."""
        status = self.process.poll()
        left = settled(self.left, _GONE_WITHIN_S)
        if not hasattr(self, "struck"):
            yield f"the fault has not come: {self.printed[-_TAIL_CHARACTERS:]}"
            return
        expected = _INTERRUPTED if self._fault.ends_session else _FAILED
        if status != expected:
            yield f"exit status {status}, expected {expected}: {self.printed[-_TAIL_CHARACTERS:]}"
        yield from left
        expected_text = self._fault.message.format(name=self.struck["name"])
        if expected_text not in " ".join(self.printed.split()):
            yield f"not said: {expected_text}"
        if not self._fault.ends_session and "1 failed, 1 passed" not in self.printed:
            yield "the next case has not passed"

    @property
    def failure(self) -> str:
        """The failure of the first case, in one line."""
        lines = [
            line for line in self.printed.splitlines() if "Error: " in line or "Failed: " in line
        ]
        return " ".join(lines[0].split()) if lines else ""


def _runs(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _used_s(pid: int) -> float:
    """The processor time of a process."""
    with suppress(psutil.Error):
        user_s, system_s, *_ = psutil.Process(pid).cpu_times()
        return float(user_s + system_s)
    return 0.0
