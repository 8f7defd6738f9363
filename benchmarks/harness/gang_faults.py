"""Whatever befalls a gang ends its case in time, is said by name, and leaves nothing behind.

Each fault is a session of its own with two cases of two replicas. It befalls the first case, whose
gang must be gone within the limit of what it was doing and two seconds (within seven at most if the
fault shows by itself), counted from the last moment at which it built anything; the failure must
name the role (or the port, or the versions). Then the second case must pass, with a gang of its
own, unless the session was to end. Afterwards there must be

- no process of the session, recognised by a variable in its environment,
- no network namespace that has a name, no interface and no queue that was not there before.

A role is killed or stopped, or its link cut (`--fw-network 100mbit`), before the roles meet, while
they build the case or while they are timed; somebody has its port; it has another version; the
controller is killed; the session is interrupted as by Ctrl-C. Linux only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bounds
import psutil

#: The variable by which a process of a session is recognised.
_MARK = "FWBENCH_FAULTS"

#: What may be added to a limit, and the limit of what shows by itself.
_GRACE_S = 2.0
_SEEN_WITHIN_S = 5.0

#: A gang that takes less than this processor time does not build any more.
_IDLE_S = 0.05

_END_WITHIN_S = 300.0
_GONE_WITHIN_S = 5.0
_TAIL_CHARACTERS = 600

#: Ends of a session: as pytest has it when cases fail, and when it is interrupted.
_FAILED, _INTERRUPTED = 1, 2


@dataclass(frozen=True)
class Fault:
    """What befalls a gang.

    Attributes:
        kind: what is done.
        phase: the question to all roles while which it is done; empty for answers and addresses
            that are tampered with.
        role: to which one, from the first worker on.
        said: a part of what the failure must say, with the name of the role.
    """

    kind: str
    phase: str
    role: int = 1
    said: str = "{name}"

    def __str__(self) -> str:
        return f"{self.kind} at {self.phase}" + (f", role {self.role}" if self.role != 1 else "")

    @property
    def is_seen(self) -> bool:
        """Whether it shows by itself, long before any limit."""
        return self.kind not in ("stopped", "cut", "port taken")

    @property
    def ends_session(self) -> bool:
        """Whether no further case is to be done."""
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
    """

    options: tuple[str, ...]
    workload: str = "mlp_step"
    roles: int = 2
    has_port: bool = True


_KILLED = "{name} was killed by SIGKILL"
_STOPPED = "{name} is stopped"


def _faults(gang: Tried) -> list[Fault]:
    """All faults of a gang; also of the last role, if that is no worker."""
    served = [
        Fault(kind, phase, gang.roles - 1, said)
        for kind, said in (("killed", _KILLED), ("stopped", _STOPPED))
        for phase in ("join", "round")
        if gang.roles > 2
    ]
    return [
        Fault("killed", "sit", said=_KILLED),
        Fault("killed", "join", said=_KILLED),
        Fault("stopped", "join", said=_STOPPED),
        Fault("cut", "join", said="GangFailed: worker"),
        Fault("stopped", "bind", said=_STOPPED),
        Fault("killed", "round", said=_KILLED),
        Fault("stopped", "round", said=_STOPPED),
        Fault("cut", "round", said="did not answer within"),
        *served,
        *[Fault("port taken", "join", said="took the ports of a gang 3 times")] * gang.has_port,
        Fault("other version", "sit", said="must have the same versions"),
        Fault("controller killed", "join", said="SIGKILL"),
        Fault("controller killed", "round", said="SIGKILL"),
        Fault("interrupted", "join", said="KeyboardInterrupt"),
        Fault("interrupted", "round", said="KeyboardInterrupt"),
    ]


_SERVERS = ("--fw-servers=1",)

GANGS = {
    "numpy": Tried(("--fw=numpy",), "all_reduce", has_port=False),
    "torch": Tried(("--fw=torch", "--fw-execution=eager"), has_port=False),
    "tensorflow": Tried(("--fw=tensorflow", "--fw-execution=graph")),
    "tensorflow ps_async": Tried(
        ("--fw=tensorflow", "--fw-execution=graph", "--fw-strategy=ps_async", *_SERVERS), roles=4
    ),
    "mxnet": Tried(
        ("--fw=mxnet", "--fw-execution=eager", "--fw-strategy=ps_sync", *_SERVERS), roles=4
    ),
    "jax": Tried(("--fw=jax",)),
}

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
from fwbench.scale import gang
from fwbench.workloads import {workload}

fault = json.loads(Path("fault.json").read_text())
here, ask, rounds = Path(__file__).parent, gang.Gang.ask, [0]
taken = socket.create_server(("127.0.0.1", 0))


def strike(struck, how):
    quiet_s, role = how.get("quiet_s", how["limit_s"]), struck._roles[fault["role"]]
    limit_s = min(how["limit_s"], quiet_s)
    told = {{"limit_s": limit_s, "pids": struck.pids, "name": role.name, "at_s": time.time()}}
    (here / "struck.tmp").write_text(json.dumps(told))
    (here / "struck.tmp").rename(here / "struck.json")
    if fault["kind"] in ("killed", "stopped"):
        os.kill(role.pid, signal.SIGKILL if fault["kind"] == "killed" else signal.SIGSTOP)
    elif fault["kind"] == "cut":
        struck._hosts.network.cut(fault["role"])
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
        values = ([each and f"{{each.rpartition(':')[0]}}:{{port}}" for each in values[0]],)
    elif now and fault["kind"] == "other version":
        answers = ask(self, kind, *values, **how)
        strike(self, how)
        answers[fault["role"]]["versions"][self.composition.framework] = "0.1"
        return answers
    elif now:
        # A little later, as it has been asked by then; before the roles meet at once.
        wait_s = {{"join": 0.0, "sit": 0.3, "bind": 0.0, "round": 0.02}}[kind]
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

_INI = """
[pytest]
pythonpath = .
"""

#: pytest, with Ctrl-C switched on even where this script runs in the background of a shell.
_MAIN = (
    "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.exit(pytest.main())"
)

_ARGUMENTS = (
    *("-p", "no:randomly", "-p", "no:cacheprovider", "-v", "--color=no", "--fw-threads=1"),
    *("--benchmark-max-time=0.2", "--fw-warmup=0.1", "--fw-replicas=2", "--fw-dtype=float32"),
)


class Session:
    """A session of pytest with a fault, in a folder of its own.

    Args:
        folder: an empty one.
        gang: that its cases have.
        fault: that befalls it.
    """

    def __init__(self, folder: Path, gang: Tried, fault: Fault) -> None:
        self._fault = fault
        self._folder = folder
        (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
        (folder / "test_it.py").write_text(_SUITE.format(workload=gang.workload), encoding="utf-8")
        (folder / "pytest.ini").write_text(_INI, encoding="utf-8")
        (folder / "fault.json").write_text(json.dumps(vars(fault)), encoding="utf-8")
        network = ["--fw-network=100mbit"] if fault.kind == "cut" else []
        with (folder / "output").open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *_ARGUMENTS, *gang.options, *network],
                cwd=folder,
                env={**os.environ, _MARK: str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has printed."""
        text = (self._folder / "output").read_text(encoding="utf-8", errors="replace")
        return text.replace("\nE   ", "\n")

    def suffer(self) -> tuple[float, float]:
        """Wait for the end; how long the gang was there after the fault, and how long it may be."""
        until_s = time.monotonic() + _END_WITHIN_S
        told = self._folder / "struck.json"
        self._wait(told.exists, until_s)
        if not told.exists():
            return 0.0, 0.0
        self.struck: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
        self._used_s = 0.0
        self._wait(self._is_gone, until_s)
        gone_s = time.time() - self.struck["at_s"]
        self._wait(lambda: False, until_s)
        return gone_s, self.struck["limit_s"]

    def _is_gone(self) -> bool:
        """Whether the gang has ended; as long as it builds, the fault begins anew."""
        pids = self.struck["pids"]
        if self._fault.phase == "bind":
            used_s = sum(map(_used_s, pids))
            if used_s > self._used_s + _IDLE_S:
                self._used_s, self.struck["at_s"] = used_s, time.time()
        return not any(map(_runs, pids))

    def _wait(self, done: Callable[[], bool], until_s: float) -> None:
        while not done() and self._process.poll() is None and time.monotonic() < until_s:
            time.sleep(0.02)

    def problems(self) -> Iterator[str]:
        """What is wrong after the end."""
        status = self._process.poll()
        until_s = time.monotonic() + _GONE_WITHIN_S
        while (left := [*self.processes()]) and time.monotonic() < until_s:
            time.sleep(0.1)
        if not hasattr(self, "struck"):
            yield f"the fault has not come: {self.said[-_TAIL_CHARACTERS:]}"
            return
        expected = _INTERRUPTED if self._fault.ends_session else _FAILED
        if status != expected:
            yield f"exit status {status}, expected {expected}: {self.said[-_TAIL_CHARACTERS:]}"
        for process in left:
            with suppress(psutil.Error):
                yield f"process {process.pid} is left: {' '.join(process.cmdline())[:80]}"
        said = self._fault.said.format(name=self.struck["name"])
        if said not in " ".join(self.said.split()):
            yield f"not said: {said}"
        if not self._fault.ends_session and "1 failed, 1 passed" not in self.said:
            yield "the next case has not passed"

    @property
    def failure(self) -> str:
        """The failure of the first case, in one line."""
        lines = [line for line in self.said.splitlines() if "Error: " in line or "Failed: " in line]
        return " ".join(lines[0].split()) if lines else ""

    def processes(self) -> Iterator[psutil.Process]:
        """What is alive of it, descendants included."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(_MARK) == str(self._folder):
                    yield process

    def end(self) -> None:
        """End what is left of it."""
        for process in [*self.processes()]:
            with suppress(psutil.Error):
                process.kill()
        self._process.wait()


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


def _network() -> tuple[str, ...]:
    """The interfaces and queues that are here, and the network namespaces with a name."""
    mounted = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return (
        *(line.partition(" - ")[2] for line in mounted if " - nsfs " in line),
        *(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for command in (["ip", "-br", "link"], ["tc", "qdisc", "show"])
        ),
    )


def _try(name: str, fault: Fault) -> bounds.Finding:
    """A session with a fault, and a line of what became of it."""
    before, folder = _network(), Path(tempfile.mkdtemp(prefix="fwbench-faults-"))
    session = Session(folder, GANGS[name], fault)
    try:
        gone_s, limit_s = session.suffer()
        problems = [*session.problems()]
    finally:
        session.end()
    if _network() != before:
        problems.append("interfaces, queues or namespaces are left")
    limit_s = min(limit_s, _SEEN_WITHIN_S) if fault.is_seen else limit_s
    in_time = gone_s <= limit_s + _GRACE_S
    print(f"{name}, {fault}: {gone_s:.1f} s; {session.failure}", flush=True)
    for problem in problems:
        print(f"      {problem}", flush=True)
    if problems or not in_time:
        print(f"      see {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    bound = f"at most {limit_s + _GRACE_S:.1f} s"
    kept = in_time and not problems
    return bounds.Finding(f"{name}, {fault}", f"{gone_s:.1f} s", bound, kept)


def main() -> int:
    """Try what was asked for, print a table, and give the exit status."""
    given = bounds.arguments(
        __doc__,
        rounds=1,
        texts={
            "gangs": f"of these, by commas: {', '.join(GANGS)} (default: all)",
            "faults": "those alone whose names have this part",
        },
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faults = [
        (name, fault)
        for name in (given.gangs.split(",") if given.gangs else GANGS)
        for fault in _faults(GANGS[name]) * given.rounds
        if given.faults in str(fault)
    ]
    return bounds.conclude([_try(*each) for each in faults])


if __name__ == "__main__":
    sys.exit(main())
