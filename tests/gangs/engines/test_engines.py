"""Roles that mpiexec starts, or commands of a file of places: they connect to their controller."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fwbench.errors import GangFailed, NetworkUnavailable, UsageError
from fwbench.gangs.engines import hosts
from fwbench.gangs.engines.hosts import RemoteHosts
from fwbench.gangs.engines.places import ListedMachines, Machine, Machines
from fwbench.gangs.engines.rendezvous import ROLE, TICKET, WATCH, Rendezvous, Ticket, connect
from fwbench.gangs.gang import Gang
from fwbench.gangs.pool import check, engine
from support.gangs import SOON, composition, controller

#: An mpiexec, as far as fwbench needs it: N processes, each with its number.
_MPIEXEC = f"""#!{sys.executable}
import os, subprocess, sys
number, command = int(sys.argv[2]), sys.argv[3:]
started = [
    subprocess.Popen(command, env={{**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)}})
    for rank in range(number)
]
sys.exit(max(process.wait() for process in started))
"""

_SOON_S = 30.0


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands, the first on the path; what they start imports what this does."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return tmp_path


def program(path: Path, text: str) -> None:
    """Put an mpiexec into a folder."""
    (path / "mpiexec").write_text(text)
    (path / "mpiexec").chmod(0o755)


@pytest.fixture
def rendezvous() -> Iterator[Rendezvous]:
    rendezvous = Rendezvous()
    yield rendezvous
    rendezvous.close()


def test_a_process_with_the_secret_is_accepted(rendezvous: Rendezvous) -> None:
    ticket = rendezvous.ticket(3)
    with pytest.raises(GangFailed, match="cannot be reached"):
        connect(ticket._replace(port=1), ROLE)
    ends = _connect(rendezvous, ticket, WATCH), _connect(rendezvous, ticket, ROLE)
    connections = rendezvous.wait(3, time.monotonic())
    assert connections is not None
    role, watch = connections
    ends[0].sendall(b"w")
    ends[1].sendall(b"r")
    assert (role.recv(1), watch.recv(1)) == (b"r", b"w")
    for end in (*ends, role, watch):
        end.close()
    assert rendezvous.wait(3, time.monotonic()) is None


def _connect(rendezvous: Rendezvous, ticket: Ticket, kind: int) -> socket.socket:
    """Connect, while the rendezvous accepts connections, and waits for another process."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        coming = threads.submit(connect, ticket, kind)
        while not coming.done():
            assert rendezvous.wait(99, time.monotonic() + 0.05) is None
        return coming.result()


@pytest.mark.parametrize("wrong", ["secret", "nothing", "twice"])
def test_other_connections_are_refused(rendezvous: Rendezvous, wrong: str) -> None:
    """Without the secret, without a greeting, or under the number of another process."""
    ticket = rendezvous.ticket(0)
    if wrong == "secret":
        with pytest.raises(GangFailed, match="does not know this process"):
            _connect(rendezvous, ticket._replace(token="0" * 32), ROLE)
    elif wrong == "twice":
        with _connect(rendezvous, ticket, ROLE), pytest.raises(GangFailed, match="does not know"):
            _connect(rendezvous, ticket, ROLE)
    else:
        with socket.create_connection((ticket.host, ticket.port)) as end:
            assert rendezvous.wait(0, time.monotonic() + 0.05) is None
            end.settimeout(5.0)
            assert end.recv(1) == b""
    assert rendezvous.wait(0, time.monotonic()) is None


def test_an_ticket_says_which_process_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert Ticket.parse("here 80 secret 5") == Ticket("here", 80, "secret", 5)
    with pytest.raises(UsageError, match="does not say which one it is: none of the variables"):
        Ticket.parse("here 80 secret")
    monkeypatch.setenv("PMI_RANK", "2")
    assert Ticket.parse("here 80 secret").rank == 2
    with pytest.raises(UsageError, match="without a ticket"):
        Ticket.parse("")


def test_an_address_of_others_is_refused() -> None:
    """The message has it (no machine has 192.0.2.0/24: it is for documentation)."""
    with pytest.raises(UsageError, match=r"does not have the address 192\.0\.2\.7"):
        Rendezvous("192.0.2.7")


# mpiexec


def _mpi(number: int = 2) -> Gang:
    return Gang(composition(number), engine("mpi"), SOON)


def test_mpiexec_starts_a_gang(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toggle of the process reaches its roles, the secret does not."""
    program(path, _MPIEXEC)
    monkeypatch.setenv("FWBENCH_SPARSE", "on")
    gang = _mpi()
    gang.start()
    try:
        pids = gang.pids
        assert [role.name for role in gang._roles] == ["worker 0 of 2", "worker 1 of 2"]
        assert gang.network == "loopback"
        for pid in pids:
            environment = psutil.Process(pid).environ()
            assert environment["FWBENCH_SPARSE"] == "on"
            assert environment["OMP_NUM_THREADS"] == "1"
            assert TICKET not in environment
        assert gang.is_alive
    finally:
        gang.close()
    assert not any(map(psutil.pid_exists, pids))


def test_a_role_of_mpiexec_that_is_killed_is_named(path: Path) -> None:
    """The message has its end, as its launcher reports it; no process is left."""
    program(path, _MPIEXEC)
    gang = _mpi()
    gang.start()
    pids = gang.pids
    psutil.Process(pids[1]).kill()
    with pytest.raises(GangFailed, match=r"worker 1 of 2 was killed by SIGKILL .* while counting"):
        gang.ask("usage", limit_s=30.0, doing="counting")
    assert not any(map(psutil.pid_exists, pids))


def test_a_role_ends_with_its_launcher(path: Path) -> None:
    program(path, _MPIEXEC)
    gang = _mpi()
    gang.start()
    pids = gang.pids
    launcher = psutil.Process(pids[0]).parent()
    assert launcher is not None
    role = psutil.Process(pids[0])
    launcher.kill()
    psutil.wait_procs([role], timeout=30.0)  # the kernel ends it, a moment later
    with pytest.raises(GangFailed, match="worker 0 of 2 was lost with its launcher"):
        gang.ask("usage", limit_s=30.0, doing="counting")
    assert not any(map(psutil.pid_exists, pids))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "#!/bin/sh\necho no slots left >&2; exit 3",
            "0 of 2 was not started: .* 3.*no slots left",
        ),
        ("#!/bin/sh\nexec sleep 60", "worker 0 of 2 did not connect within 0.5 s: mpiexec runs"),
    ],
    ids=["ends", "hangs"],
)
def test_an_mpiexec_that_starts_nothing_is_named(
    path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the worker that did not come, and the command's own words."""
    program(path, text)
    monkeypatch.setattr(hosts.RemoteHosts.__init__, "__defaults__", ((), 0.5))
    if "echo" in text:
        monkeypatch.setattr(hosts.RemoteHosts.__init__, "__defaults__", ((), 60.0))
    with pytest.raises(GangFailed, match=f"(?s){message}"):
        _mpi().start()


def test_without_mpiexec_the_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="by mpiexec, which is not there: install Open MPI"):
        check("mpi", None, ())


def test_networks_are_for_processes_of_one_machine(path: Path) -> None:
    """Processes of MPI have a network already."""
    program(path, _MPIEXEC)
    with pytest.raises(NetworkUnavailable, match="processes of MPI have their own: leave out"):
        check("mpi", None, ("100mbit",))
    check("mpi", None, ("loopback",))


@pytest.mark.parametrize("name", ["mpi", "places"])
def test_no_role_survives_its_controller(path: Path, name: str) -> None:
    program(path, _MPIEXEC)
    file = path / "places.toml"
    file.write_text(f'place = [{{command = ["env"], python = "{sys.executable}", roles = 2}}]')
    given = {"mpi": ("mpi", ""), "places": ("local", str(file))}[name]
    with controller(engine=given[0], places=given[1]) as (process, pids):
        family = [psutil.Process(pid) for pid in pids]
        family += psutil.Process(process.pid).children(recursive=True)
        assert len({*family}) >= 5 - (name == "places")
        process.kill()
        process.wait()
        _, left = psutil.wait_procs(family, _SOON_S)
        assert left == []


def test_places_of_a_file_are_filled_in_their_order(path: Path) -> None:
    """Each has as many roles as it takes; an address may be given for them."""
    file = path / "places.toml"
    file.write_text(
        f"""
        [[place]]
        command = ["env", "OF=first"]
        python = "{sys.executable}"
        roles = 2

        [[place]]
        command = ["env", "OF=second"]
        python = "{sys.executable}"
        address = "localhost"
        """
    )
    gang = Gang(composition(3), engine("local", file), SOON)
    gang.start()
    try:
        names = [psutil.Process(pid).environ()["OF"] for pid in gang.pids]
        assert names == ["first", "first", "second"]
    finally:
        gang.close()


def test_more_roles_than_places_are_refused() -> None:
    machines = Machines(by_role=[Machine(["env"])], file="places.toml")
    with pytest.raises(UsageError, match=r"of 2 processes .* and places.toml has 1: add places"):
        Gang(composition(2), ListedMachines(machines)).start()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('["sh", "-c", "echo no route to node1 >&2; exit 255"]', "255.*no route to node1"),
        ('["nowhere-at-all"]', "nowhere-at-all cannot be started"),
    ],
    ids=["unreachable", "no command"],
)
def test_a_place_that_cannot_be_reached_is_named(path: Path, command: str, message: str) -> None:
    file = path / "places.toml"
    file.write_text(f"[[place]]\ncommand = {command}")
    gang = Gang(composition(1), engine("local", file), SOON)
    with pytest.raises(GangFailed, match=f"(?s){message}"):
        gang.start()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("place = ", "cannot be read"),
        ("hosts = 3", "'hosts' is not known; known: address, mpiexec, place"),
        ("address = 3", "address = 3 is not a text"),
        ('mpiexec = "srun"', "mpiexec = 'srun' is not a list of words"),
        ("place = [3]", "place 1: 3 is not a table"),
        ("[[place]]\nroles = 2", "place 1 does not say how a command is started there"),
        ('[[place]]\ncommand = ["env"]\nroles = 0', "roles = 0; it must be 1 or more"),
        ('[[place]]\ncommand = ["env"]\nroles = true', "roles = True is not a whole number"),
        ('address = "127.0.0.1"', "has no places for --fw-engine local"),
    ],
)
def test_a_file_that_says_something_else_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "places.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        check("local", file, ())


def test_mpi_takes_its_command_from_the_file_and_no_places(path: Path) -> None:
    """mpiexec decides where its processes run."""
    program(path, _MPIEXEC)
    file = path / "places.toml"
    file.write_text('mpiexec = ["no-such-srun", "--mpi=none"]')
    with pytest.raises(UsageError, match="by no-such-srun, which is not there"):
        check("mpi", file, ())
    file.write_text('[[place]]\ncommand = ["env"]')
    with pytest.raises(UsageError, match=r"mpiexec .* decides where roles run: leave them out"):
        check("mpi", file, ())


def test_another_machine_is_no_loopback() -> None:
    """The record calls what joins roles real where an address is none of loopback."""
    assert Machines().are_here
    assert not Machines("192.0.2.7").are_here
    assert RemoteHosts(Rendezvous(), [], ["192.0.2.7"]).address(0) == "192.0.2.7"
