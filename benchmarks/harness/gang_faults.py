"""Every fault of a gang ends its case in time, is said by name, and leaves nothing behind.

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

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import bounds
from gang_session import Fault, Session, Tried

#: What may be added to a limit, and the limit of what shows by itself.
_GRACE_S = 2.0
_SEEN_WITHIN_S = 5.0


_KILLED = "{name} was killed by SIGKILL"
_STOPPED = "{name} is stopped"


def _faults(gang: Tried) -> list[Fault]:
    """All faults of a gang; also of its server, and of the role behind that."""
    served = [
        Fault(kind, phase, role, message)
        for role in range(2, gang.roles)
        for kind, message in (("killed", _KILLED), ("stopped", _STOPPED))
        for phase in ("join", "round")
    ]
    every = [
        Fault("killed", "prepare", message=_KILLED),
        Fault("killed", "join", message=_KILLED),
        Fault("stopped", "join", message=_STOPPED),
        Fault("cut", "join", message=f"GangFailed: {gang.takes_steps}"),
        Fault("stopped", "bind", message=_STOPPED),
        Fault("killed", "round", message=_KILLED),
        Fault("stopped", "round", message=_STOPPED),
        Fault("cut", "round", message="did not answer within"),
        *served,
        *[Fault("port taken", "join", message="took the ports of a gang 3 times")] * gang.has_port,
        Fault("other version", "prepare", message="must have the same versions"),
        Fault("controller killed", "join", message="SIGKILL"),
        Fault("controller killed", "round", message="SIGKILL"),
        Fault("interrupted", "join", message="KeyboardInterrupt"),
        Fault("interrupted", "round", message="KeyboardInterrupt"),
    ]
    return [fault for fault in every if fault.kind != "cut" or gang.has_links]


_SERVERS = ("--fw-toggle=servers=1",)

GANGS = {
    "numpy": Tried(("--fw=numpy",), "all_reduce", has_port=False),
    "torch": Tried(("--fw=torch", "--fw-execution=eager"), has_port=False),
    "tensorflow": Tried(("--fw=tensorflow", "--fw-execution=graph")),
    "tensorflow ps_async": Tried(
        ("--fw=tensorflow", "--fw-execution=graph", "--fw-toggle=strategy=ps_async", *_SERVERS),
        roles=4,
        takes_steps="the coordinator",
    ),
    "mxnet": Tried(
        ("--fw=mxnet", "--fw-execution=eager", "--fw-toggle=strategy=ps_sync", *_SERVERS), roles=4
    ),
    "jax": Tried(("--fw=jax",)),
    # Started as elsewhere, by what has to be installed: mpiexec, or `ray start --head`.
    **{
        f"numpy {engine}": Tried(
            ("--fw=numpy", f"-ofw_engine={engine}"), "all_reduce", has_port=False, has_links=False
        )
        for engine in ("mpi", "ray")
    },
}


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
    return bounds.conclude([_try(*fault) for fault in faults])


if __name__ == "__main__":
    sys.exit(main())
