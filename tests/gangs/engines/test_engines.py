"""Roles that mpiexec starts, or commands of a file of places: they connect to their controller."""

import os
import resource
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench.errors import GangFailed, NetworkUnavailable, UsageError
from fwbench.gangs.engines import places
from fwbench.gangs.engines.launcher import command
from fwbench.gangs.engines.places import ListedMachines, Machine, Machines, RemoteHosts
from fwbench.gangs.engines.rendezvous import ROLE, TICKET, WATCH, Rendezvous, Ticket, connect
from fwbench.gangs.gang import Gang
from fwbench.gangs.pool import check, engine
from fwbench.processes import greeting
from fwbench.processes.channel import Channel
from fwbench.processes.process import Process
from support.gangs import SOON, composition, controller
from support.tables import tabled

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
    rendezvous = Rendezvous("127.0.0.1", 2)
    yield rendezvous
    rendezvous.close()


_SECOND = [(1, ROLE), (1, WATCH)]


def _connect(rendezvous: Rendezvous, ticket: Ticket, kind: int) -> socket.socket:
    """Connect, while the rendezvous waits for another process."""
    with ThreadPoolExecutor(1) as threads:
        coming = threads.submit(connect, ticket, kind)
        while not coming.done():
            assert not rendezvous.wait([(0, ROLE)], time.monotonic() + 0.05)
        return coming.result()


@pytest.mark.filterwarnings("ignore:connections to a gang")
def test_a_process_with_the_secret_is_accepted(rendezvous: Rendezvous) -> None:
    """Once; nobody else is, nor under another number."""
    ticket = rendezvous.ticket(1)
    with pytest.raises(GangFailed, match="cannot be reached"):
        connect(ticket._replace(port=1), ROLE)
    ends = _connect(rendezvous, ticket, WATCH), _connect(rendezvous, ticket, ROLE)
    role, watch = rendezvous.wait(_SECOND, time.monotonic())
    ends[0].sendall(b"w")
    ends[1].sendall(b"r")
    assert (role.recv(1), watch.recv(1)) == (b"r", b"w")
    for wrong in (ticket, ticket._replace(rank=2), ticket._replace(rank=0, token="0" * 32)):
        with pytest.raises(GangFailed, match="not know the secret, or does not expect this proc"):
            _connect(rendezvous, wrong, ROLE)
    for end in ends:
        end.close()


_RESETTING = socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(bool, id="silent"),
        pytest.param(lambda end: end.sendall(b"."), id="slow"),
        pytest.param(lambda end: end.sendall(os.urandom(1000)), id="garbage"),
        pytest.param(lambda end: end.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), id="HTTP"),
        pytest.param(lambda end: end.shutdown(socket.SHUT_WR), id="half closed"),
        pytest.param(lambda end: end.setsockopt(*_RESETTING) or end.close(), id="reset"),
    ],
)
def test_strangers_delay_no_gang(rendezvous: Rendezvous, act: Callable[[Any], Any]) -> None:
    """500 of them at once, which are counted; the bound is for a busy machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2048), hard), hard))
    ticket = rendezvous.ticket()

    def come() -> float:
        strangers = [socket.create_connection(ticket[:2]) for _ in range(500)]
        for end in strangers:
            act(end)
        begin_s = time.monotonic()
        for rank, kind in product((1, 0), (ROLE, WATCH)):
            strangers.append(connect(ticket._replace(rank=rank), kind))
        delay_s = time.monotonic() - begin_s
        for end in strangers:
            end.close()
        return delay_s

    with ThreadPoolExecutor(1) as threads:
        coming = threads.submit(come)
        with pytest.warns(UserWarning, match="did not prove its secret, all closed: 500"):
            assert rendezvous.wait([(0, WATCH)], time.monotonic() + 60.0)
        assert coming.result() < 5.0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with pytest.raises(GangFailed, match="cannot be reached"):  # all are there, so it is closed
        connect(ticket, ROLE)


@pytest.mark.filterwarnings("ignore:connections to a gang")
def test_slow_strangers_have_one_deadline(
    rendezvous: Rendezvous, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then does not extend it, and waiting ends in time meanwhile."""
    monkeypatch.setattr(greeting, "_CALLER_S", 1.0)
    stop = threading.Event()
    strangers = [socket.create_connection(rendezvous.ticket()[:2]) for _ in range(20)]

    def drip() -> None:
        while not stop.wait(0.3):
            for end in strangers:
                with suppress(OSError):
                    end.sendall(b".")

    with ThreadPoolExecutor(1) as threads:
        threads.submit(drip)
        begin_s = time.monotonic()
        while rendezvous._strangers < 20 and time.monotonic() < begin_s + 10.0:
            assert not rendezvous.wait(_SECOND, time.monotonic() + 0.1)
        stop.set()
    assert rendezvous._strangers == 20


@pytest.mark.parametrize("is_sent_back", [False, True])
def test_a_launcher_obeys_its_controller_alone(path: Path, is_sent_back: bool) -> None:
    """Another one at its port has nothing run, not even by sending its own proof back."""
    (path / "sitecustomize.py").write_text(f"open({str(path / 'ran')!r}, 'w')")
    with socket.create_server(("127.0.0.1", 0)) as rogue:
        ticket = Ticket(*rogue.getsockname(), "never-sent", 0)
        launcher = Process(command(), os.environ, given=f"{ticket}\n")
        end, _ = rogue.accept()
        end.sendall(bytes(32))
        heard = end.recv(69, socket.MSG_WAITALL)
        end.sendall(heard[-32:] if is_sent_back else bytes(32))
        with suppress(ConnectionError):
            Channel(end).send("start", ["numpy", "1"], {"PYTHONPATH": str(path)})
        assert launcher.ending(_SOON_S) == "ended with exit status 1"
        assert "does not know the secret" in launcher.tail()
        launcher.kill()
    assert ticket.token.encode() not in heard
    assert not (path / "ran").exists()


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
        Rendezvous("192.0.2.7", 1)


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


@pytest.mark.parametrize(
    ("killed", "message"),
    [
        ("a role", r"worker 1 of 2 was killed by SIGKILL .* while counting"),
        ("a launcher", "worker 0 of 2 was lost with its launcher"),
    ],
)
def test_a_role_of_mpiexec_that_ends_is_named(path: Path, killed: str, message: str) -> None:
    """The message has its end, as its launcher reports it; no process is left."""
    program(path, _MPIEXEC)
    gang = _mpi()
    gang.start()
    pids = gang.pids
    first, second = map(psutil.Process, pids)
    if killed == "a role":
        second.kill()
    else:
        launcher = first.parent()
        assert launcher is not None
        launcher.kill()
        psutil.wait_procs([first], timeout=30.0)  # the kernel ends it, a moment later
    with pytest.raises(GangFailed, match=message):
        gang.ask("usage", limit_s=30.0, doing="counting")
    assert not any(map(psutil.pid_exists, pids))


@tabled
def test_an_mpiexec_that_starts_nothing_is_named(
    path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the worker that did not come, and the command's own words."""
    program(path, text)
    monkeypatch.setattr(places.RemoteHosts.__init__, "__defaults__", ((), 0.5))
    if "echo" in text:
        monkeypatch.setattr(places.RemoteHosts.__init__, "__defaults__", ((), 60.0))
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


@tabled
def test_a_place_that_cannot_be_reached_is_named(path: Path, command: str, message: str) -> None:
    file = path / "places.toml"
    file.write_text(f"[[place]]\ncommand = {command}")
    gang = Gang(composition(1), engine("local", file), SOON)
    with pytest.raises(GangFailed, match=f"(?s){message}"):
        gang.start()


@tabled
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
    assert RemoteHosts(Rendezvous("127.0.0.1", 1), [], ["192.0.2.7"]).address(0) == "192.0.2.7"
