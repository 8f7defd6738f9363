"""Gangs of real processes: what they answer, and how each failure ends them."""

import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from fwbench.errors import GangFailed
from fwbench.gangs import gang as gangs
from fwbench.gangs.gang import Composition, Gang
from fwbench.gangs.launch import Hosts, Local
from fwbench.gangs.shares import Task
from fwbench.processes.greeting import call
from support.forkserver import Forking
from support.gangs import SOON, Meddled, composition, controller, running, started
from support.real_training import all_of
from support.tables import tabled
from support.terminals import Proxy

#: What gangs of a framework do here.
_TASKS = {
    "numpy": Task("all_reduce", 1000, "cpu", "eager", "float32", sparse=False),
    "mxnet": Task("mlp_step", 16, "cpu", "eager", "float32", sparse=False),
    "tensorflow": Task("mlp_step", 16, "cpu", "graph", "float32", sparse=False),
}
_TASK = asdict(_TASKS["numpy"])

_WITH_SERVERS: dict[str, dict[str, Any]] = {
    "ps_sync": {"servers": 1, "coordinator": "scheduler", "updating": True},
    "ps_async": {"servers": 1, "coordinator": "coordinator"},
}

#: A round that never ends by itself.
_FOR_EVER = 10**9

_PATIENCE_S = 60.0


def _composition(framework: str, strategy: str, replicas: int = 2, **more: Any) -> Composition:
    """The composition of a gang of a framework; the test is skipped where that is missing."""
    more |= _WITH_SERVERS.get(strategy, {})
    return composition(replicas, all_of(framework), strategy=strategy, **more)


@contextmanager
def _working(requested: Composition) -> Iterator[Gang]:
    with running(Gang(requested, Local(), SOON)) as gang:
        gang.ask("bind", asdict(_TASKS[requested.framework]), limit_s=300.0, doing="building")
        _round(gang, 1)
        yield gang


@pytest.fixture
def gang(forking_with: Forking) -> Iterator[Gang]:
    with forking_with("numpy"), _working(composition()) as made:
        yield made


def _round(gang: Gang, steps: int = 3, limit_s: float = 300.0) -> list[Any]:
    return gang.ask("round", steps, limit_s=limit_s, doing="taking steps")


def _pid(gang: Gang, role: str) -> int:
    names = [place.name for place in gang.composition.places]
    return gang.pids[names.index(role)]


def _runs(pid: int) -> bool:
    """False of what has ended, also later than it was waited for: nobody has collected it then."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _gone(pids: list[int]) -> bool:
    until_s = time.monotonic() + _PATIENCE_S
    while any(map(_runs, pids)):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def test_workers_answer_by_rank_and_leave_no_process(gang: Gang) -> None:
    """Greetings, checks, the seconds of steps, and the bytes that are sent."""
    assert [greeting["threads"] for greeting in gang.greetings] == [1, 1]
    checked = gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
    assert [answer["sent_bytes"] for answer in checked] == [12_001, 12_001]
    for answer in _round(gang):
        assert answer["seconds"] > 0.0
        assert answer["sent_bytes"] == 3 * 4000  # without the byte of the barrier
    assert gang.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying") == [{}, {}]
    assert gang.is_alive
    pids = gang.pids
    gang.close()
    assert not gang.is_alive
    assert _gone(pids)


@tabled
def test_a_killed_role_ends_the_gang(
    forking_with: Forking, framework: str, strategy: str, role: str
) -> None:
    """Long before any limit; it is named, and what the others ran into follows."""
    requested = _composition(framework, strategy)
    with forking_with(framework), _working(requested) as gang:
        pids = gang.pids
        threading.Timer(0.3, os.kill, (_pid(gang, role), signal.SIGKILL)).start()
        with pytest.raises(GangFailed, match=f"^{role} was killed by SIGKILL .*taking") as caught:
            _round(gang, 10**5, limit_s=600.0)
        message = "as a consequence, worker 0 of 2 raised ConnectionError"
        assert (message in str(caught.value)) or framework != "numpy"
        assert _gone(pids)


def test_a_worker_that_ends_after_its_answer_ends_the_gang(gang: Gang) -> None:
    """The other, whose answer is missing, may wait for it."""
    os.kill(gang.pids[0], signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (gang.pids[1], signal.SIGKILL)).start()
    with pytest.raises(GangFailed, match=r"^worker 1 of 2 was killed .*telling"):
        gang.ask("usage", limit_s=600.0, doing="telling")


@tabled
def test_a_stopped_role_ends_the_gang(
    forking_with: Forking, framework: str, strategy: str, role: str, message: str
) -> None:
    """Only the limit notices it; the message has the place where the others wait."""
    requested = _composition(framework, strategy)
    with forking_with(framework), _working(requested) as gang:
        pids = gang.pids
        os.kill(_pid(gang, role), signal.SIGSTOP)
        with pytest.raises(GangFailed, match=message) as caught:
            _round(gang, 10**5, limit_s=1.0)
        assert f" did not answer within 1 s while taking steps: {role} is stopped (SIGSTOP" in str(
            caught.value
        )
        assert _gone(pids)


def test_a_role_that_fails_names_one_that_is_stopped(gang: Gang) -> None:
    """It may have waited for that one, and given up before the controller did."""
    os.kill(gang.pids[1], signal.SIGSTOP)
    message = r"^worker 0 of 2 raised .* while waiting; worker 1 of 2 is stopped \(SIGSTOP"
    with pytest.raises(GangFailed, match=message):
        gang.ask("bind", "no task", limit_s=600.0, doing="waiting")


def test_a_gang_that_sleeps_while_it_builds_is_ended(gang: Gang) -> None:
    """Long before the limit: building may take its time, but something must run meanwhile."""
    pids = gang.pids
    os.kill(pids[1], signal.SIGSTOP)
    message = (
        "worker 1 of 2 did not answer while building, and nothing in the gang has run for 0.5 s"
    )
    with pytest.raises(GangFailed, match=message):
        gang.ask("bind", _TASK, limit_s=600.0, doing="building", quiet_s=0.5)
    assert _gone(pids)


def test_a_gang_in_which_something_runs_is_not_asleep(gang: Gang) -> None:
    """So the limit alone ends it: its steps go on, though its roles often wait for each other."""
    with pytest.raises(GangFailed, match="did not answer within 3 s while taking steps"):
        gang.ask("round", _FOR_EVER, limit_s=3.0, doing="taking steps", quiet_s=2.0)


def test_a_worker_that_fails_is_the_cause(gang: Gang) -> None:
    """A request that one of them cannot do; the others need not wait."""
    pids = gang.pids
    role_values = [_TASK, {**_TASK, "dtype": "float3"}]
    with pytest.raises(GangFailed, match=r"^worker 1 of 2 raised TypeError: .*while building"):
        gang.ask("bind", role_values=role_values, limit_s=_PATIENCE_S, doing="building")
    assert _gone(pids)


def _signalled(role: str, number: signal.Signals) -> Callable[[Gang, list[str]], list[str]]:
    def meddle(gang: Gang, addresses: list[str]) -> list[str]:
        os.kill(_pid(gang, role), number)
        return addresses

    return meddle


@tabled
def test_a_role_that_fails_before_it_joins(
    forking_with: Forking, framework: str, strategy: str, role: str, name: str
) -> None:
    """The others would wait for it, TensorFlow's servers for ever: a limit ends the start."""
    killed = name == "SIGKILL"
    requested = _composition(framework, strategy)
    gang = Meddled(
        _signalled(role, signal.Signals[name]), requested, _PATIENCE_S if killed else 1.0
    )
    message = "was killed by SIGKILL .*" if killed else "did not answer within 1 s"
    with (
        forking_with(framework),
        pytest.raises(GangFailed, match=f"{role} {message} while joining the others"),
    ):
        gang.start()
    assert _gone(gang.every_pid)


@tabled
def test_another_version_is_refused(framework: str, strategy: str, message: str) -> None:
    """By all roles, which are started here as they are for users, before anything is built."""
    requested = _composition(framework, strategy, 1, version="0.1")
    message = rf"the same versions, and have .*{message}.*controller: .* {framework} 0\.1"
    with pytest.raises(GangFailed, match=message):
        Gang(requested, Local(), SOON).start()


def test_a_worker_with_another_version_is_refused() -> None:
    """Though the first one has the controller's; the message says who has what."""
    gang = Gang(composition(version="1.26"), Local(), SOON)
    versions = gang._own_versions
    gang.greetings = [
        {"host": "here", "versions": versions | {"numpy": version}} for version in ("1.26", "0.1")
    ]
    with pytest.raises(GangFailed, match=r"must have the same .*; worker 1 of 2 on .*numpy 0\.1"):
        gang._refuse_versions()


@tabled
def test_a_port_that_somebody_took_is_recognised(
    forking_with: Forking,
    framework: str,
    strategy: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what a framework says of it, at once; the gang would be started again."""
    monkeypatch.setattr(gangs, "_STARTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        requested = _composition(framework, strategy)
        gang = Meddled(
            lambda _, addresses: [original and address for original in addresses],
            requested,
            _PATIENCE_S,
        )
        message = f"(?s)took the ports of a gang 1 times: {message}"
        with forking_with(framework), pytest.raises(GangFailed, match=message):
            gang.start()
    assert _gone(gang.every_pid)


def test_strangers_do_not_change_sums(forking_with: Forking) -> None:
    """Though they come first, send numbers, or do all that roles do but know the gang's key."""
    strangers = []
    with ThreadPoolExecutor(2) as threads:

        def come(_: Gang, addresses: list[str]) -> list[str]:
            for before, address in zip((1, 0), addresses, strict=True):
                host, port = address.split(":")
                strangers.append(socket.create_connection((host, int(port))))
                strangers[-1].sendall(bytes(range(256)))
                calling.append(threads.submit(call, (host, int(port)), "", (before, 0)))
            return addresses

        calling: list[Future[socket.socket]] = []
        with forking_with("numpy"), running(Meddled(come, join_s=_PATIENCE_S)) as gang:
            gang.ask("bind", _TASK, limit_s=_PATIENCE_S, doing="building")
            gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
        assert all(isinstance(caller.exception(), ConnectionError) for caller in calling)


def test_a_cut_connection_ends_the_gang(forking_with: Forking) -> None:
    """Nothing is closed, and nothing arrives any more: only the limit notices it."""
    with Proxy() as proxy, forking_with("numpy"):
        gang = Meddled(lambda _, addresses: [*map(proxy.in_front_of, addresses)])
        with running(gang):
            gang.ask("bind", _TASK, limit_s=_PATIENCE_S, doing="building")
            _round(gang)
            proxy.cut()
            message = "worker 0 of 2 and worker 1 of 2 did not answer within 1 s .* is cut"
            with pytest.raises(GangFailed, match=message):
                _round(gang, limit_s=1.0)
    assert _gone(gang.every_pid)


def test_what_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[Any] = []

    def start(self: Hosts, host: int, *arguments: Any) -> Any:
        if host:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        first.append(original(self, host, *arguments))
        return first[0]

    original = Hosts.start
    monkeypatch.setattr(Hosts, "start", start)
    message = "2 replicas of numpy cannot be started: .* unavailable; ask for fewer --fw-replicas"
    with pytest.raises(GangFailed, match=message):
        started()
    assert _gone([role.pid for role in first])


@pytest.mark.parametrize(("taken", "starts"), [(1, 2), (9, 3)])
def test_a_gang_whose_port_is_taken_is_started_again(
    taken: int, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its choice and its use; a process that takes every port is an error after a while."""
    begun: list[Gang] = []

    def start(self: Gang) -> None:
        begun.append(self)
        if len(begun) <= taken:
            raise GangFailed("worker 0 of 2 raised OSError: [Errno 98] Address already in use")

    monkeypatch.setattr(Gang, "_start", start)
    gang = Gang(composition(), Local(), SOON)
    if taken < starts:
        gang.start()
    else:
        with pytest.raises(
            GangFailed, match=r"took the ports of a gang 3 times: worker 0 .* in use"
        ):
            gang.start()
    assert len(begun) == starts


def test_a_straggler_is_late_in_each_step(gang: Gang) -> None:
    """And the other waits for what it exchanges; checks are taken without delay."""
    late = {**_TASK, "late": {"rank": 1, "delay_s": 0.05}}
    gang.ask("bind", late, limit_s=_PATIENCE_S, doing="building")
    first, straggler = (answer["seconds"] for answer in _round(gang))
    assert straggler >= 3 * 0.05
    assert first >= 2 * 0.05


@pytest.mark.parametrize("group", [False, True], ids=["alone", "with its group"])
def test_nothing_outlives_the_controller(group: bool) -> None:
    """Killed alone, or with its session as by Ctrl-C: its workers end, too."""
    with controller() as (process, pids):
        assert len(pids) == 2
        assert {os.getpgid(pid) for pid in pids} == {process.pid}
        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
        assert _gone(pids)


@dataclass
class _Idle:
    """A role with nothing to do.

    Attributes:
        stopped: whether a signal has stopped it.
        sent: what it was asked.
    """

    stopped: bool
    sent: list[str] = field(default_factory=list)

    def is_stopped(self) -> bool:
        return self.stopped

    def send(self, kind: str) -> None:
        self.sent.append(kind)


def test_no_time_is_spent_on_asking_roles_that_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named without it, in their order; the limit of a round leaves two seconds."""
    waited: list[Any] = []

    def ready(roles: Sequence[_Idle], _: float) -> list[_Idle]:
        waited.append([*roles])
        return [role for role in roles if not role.stopped]

    monkeypatch.setattr(gangs, "ready", ready)
    stopped, well, last = _Idle(stopped=True), _Idle(stopped=False), _Idle(stopped=True)
    requested: Any = [stopped, well, last]
    assert Gang(composition(), Local(), SOON)._unresponsive(requested) == [stopped, last]
    assert waited == [[well]]
    assert (stopped.sent, well.sent, last.sent) == ([], ["usage"], [])


@pytest.mark.parametrize(("used_s", "is_quiet"), [(1e-4, True), (2e-3, False)])
def test_a_gang_that_only_looks_now_and_then_is_quiet(
    monkeypatch: pytest.MonkeyPatch, used_s: float, is_quiet: bool
) -> None:
    """Threads that wait for others may poll; those that build use their processors."""
    monkeypatch.setattr(gangs, "_POLL_S", 0.01)
    has_had_s = itertools.count(5.0, used_s)
    own_end, other_end = socket.socketpair()
    with own_end, other_end:
        role: Any = SimpleNamespace(fileno=own_end.fileno, processors_s=lambda: next(has_had_s))
        begun_s = time.monotonic()
        assert gangs._wait([role], begun_s + 1.0, 0.2) == []
    assert (time.monotonic() < begun_s + 1.0) is is_quiet
