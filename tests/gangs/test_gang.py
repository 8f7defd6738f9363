"""Gangs of real processes: what they answer, and how each failure ends them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil
import pytest

from fwbench.errors import GangFailed
from fwbench.gangs import gang as gangs
from fwbench.gangs.gang import Gang
from fwbench.gangs.launch import Local, Loopback
from fwbench.gangs.shares import Task
from support.gangs import SOON, composition, controller, started
from support.terminals import Proxy

_TASK = asdict(Task("all_reduce", 1000, "cpu", "eager", "float32", sparse=False))

#: A round that never ends by itself.
_FOR_EVER = 10**9

_PATIENCE_S = 30.0


@pytest.fixture
def gang() -> Iterator[Gang]:
    """Two workers that have built an all-reduce."""
    made = started()
    made.ask("bind", _TASK, limit_s=_PATIENCE_S, doing="building")
    yield made
    made.close()


def _round(gang: Gang, steps: int = 3, limit_s: float = _PATIENCE_S) -> list[Any]:
    return gang.ask("round", steps, limit_s=limit_s, doing="taking steps")


def _gone(pids: list[int]) -> bool:
    """True when none of these processes is left."""
    until_s = time.monotonic() + _PATIENCE_S
    while any(psutil.pid_exists(pid) for pid in pids):
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
        assert answer["sent_bytes"] == 3 * 4000 + 1  # a byte of the barrier
    assert gang.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying") == [{}, {}]
    assert gang.is_alive
    pids = gang.pids
    gang.close()
    assert not gang.is_alive
    assert _gone(pids)


def test_a_killed_worker_ends_the_gang(gang: Gang) -> None:
    """Long before any limit; it is named, and what the others ran into follows."""
    pids = gang.pids
    threading.Timer(0.3, os.kill, (pids[1], signal.SIGKILL)).start()
    with pytest.raises(GangFailed, match=r"^worker 1 of 2 was killed .*taking") as caught:
        _round(gang, _FOR_EVER, limit_s=600.0)
    assert "as a consequence, worker 0 of 2 raised ConnectionError" in str(caught.value)
    assert _gone(pids)


def test_a_worker_that_ends_after_its_answer_ends_the_gang(gang: Gang) -> None:
    """The other, whose answer is missing, may wait for it."""
    os.kill(gang.pids[0], signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (gang.pids[1], signal.SIGKILL)).start()
    with pytest.raises(GangFailed, match=r"^worker 1 of 2 was killed .*telling"):
        gang.ask("usage", limit_s=600.0, doing="telling")


def test_a_stopped_worker_ends_the_gang(gang: Gang) -> None:
    """Only the limit notices it; the message has the place where the others wait."""
    pids = gang.pids
    os.kill(pids[1], signal.SIGSTOP)
    said = "worker 1 of 2 did not answer within 1 s while .*: worker 1 of 2 is stopped .SIGSTOP"
    with pytest.raises(GangFailed, match=said) as caught:
        _round(gang, limit_s=1.0)
    assert "in _exchange" in str(caught.value)
    assert _gone(pids)


def test_a_gang_that_sleeps_while_it_builds_is_ended(gang: Gang) -> None:
    """Long before the limit: building may take its time, but something must run meanwhile."""
    pids = gang.pids
    os.kill(pids[1], signal.SIGSTOP)
    said = "worker 1 of 2 did not answer while building, and nothing in the gang has run for 0.5 s"
    with pytest.raises(GangFailed, match=said):
        gang.ask("bind", _TASK, limit_s=600.0, doing="building", quiet_s=0.5)
    assert _gone(pids)


def test_a_gang_in_which_something_runs_is_not_asleep(gang: Gang) -> None:
    """So the limit alone ends it: its steps go on, one after the other."""
    with pytest.raises(GangFailed, match="did not answer within 3 s while taking steps"):
        gang.ask("round", _FOR_EVER, limit_s=3.0, doing="taking steps", quiet_s=2.0)


def test_a_worker_that_fails_is_the_cause(gang: Gang) -> None:
    """A request that one of them cannot do; the others need not wait."""
    pids = gang.pids
    each = [_TASK, {**_TASK, "dtype": "float3"}]
    with pytest.raises(GangFailed, match=r"^worker 1 of 2 raised TypeError: .*while building"):
        gang.ask("bind", each=each, limit_s=_PATIENCE_S, doing="building")
    assert _gone(pids)


# The start


class _Meddled(Gang):
    """A gang with which something is done before its workers join, and to their answers."""

    def __init__(self, meddle: Callable[[Gang, str, list[Any]], list[Any]]) -> None:
        super().__init__(composition(), Local(), SOON)
        self._meddle = meddle
        self.every_pid: list[int] = []

    def ask(self, kind: str, *values: Any, **how: Any) -> list[Any]:
        self.every_pid = self.pids
        if kind == "join":
            values = (self._meddle(self, kind, values[0]),)
            how["limit_s"] = 1.0
        answers = super().ask(kind, *values, **how)
        return self._meddle(self, kind, answers) if kind == "prepare" else answers


def _signalled(number: signal.Signals) -> Callable[..., list[Any]]:
    def meddle(gang: Gang, kind: str, values: list[Any]) -> list[Any]:
        if kind == "join":
            os.kill(gang.pids[1], number)
        return values

    return meddle


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGKILL, "worker 1 of 2 was killed by SIGKILL .* while joining the others"),
        (signal.SIGSTOP, "worker 1 of 2 did not answer within 1 s while joining the others"),
    ],
    ids=["killed", "stopped"],
)
def test_a_worker_that_fails_before_it_joins(number: signal.Signals, said: str) -> None:
    """The others would wait for it: a limit of its own ends the start."""
    gang = _Meddled(_signalled(number))
    with pytest.raises(GangFailed, match=said):
        gang.start()
    assert _gone(gang.every_pid)


def test_other_versions_are_refused() -> None:
    """Before anything runs; the message says who has what."""

    def meddle(_: Gang, kind: str, values: list[Any]) -> list[Any]:
        if kind == "prepare":
            values[1]["versions"]["numpy"] = "0.1"
        return values

    gang = _Meddled(meddle)
    with pytest.raises(
        GangFailed, match=r"must have the same versions.*; worker 1 of 2 on .*numpy 0\.1"
    ):
        gang.start()
    assert _gone(gang.every_pid)


def test_a_cut_connection_ends_the_gang() -> None:
    """Nothing is closed, and nothing arrives any more: only the limit notices it."""
    with Proxy() as proxy:

        def meddle(_: Gang, kind: str, values: list[Any]) -> list[Any]:
            return values if kind == "prepare" else [proxy.in_front_of(each) for each in values]

        gang = _Meddled(meddle)
        gang.start()
        gang.ask("bind", _TASK, limit_s=_PATIENCE_S, doing="building")
        _round(gang)
        proxy.cut()
        said = "worker 0 of 2 and worker 1 of 2 did not answer within 1 s .* is cut"
        with pytest.raises(GangFailed, match=said):
            _round(gang, limit_s=1.0)
    assert _gone(gang.every_pid)


def test_what_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what has been started is ended."""
    first: list[Any] = []

    def start(self: Loopback, host: int, *arguments: Any) -> Any:
        if host:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        first.append(original(self, host, *arguments))
        return first[0]

    original = Loopback.start
    monkeypatch.setattr(Loopback, "start", start)
    said = "2 replicas of numpy cannot be started: .* unavailable; ask for fewer --fw-replicas"
    with pytest.raises(GangFailed, match=said):
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


# The controller


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
    asked: Any = [stopped, well, last]
    assert Gang(composition(), Local(), SOON)._unresponsive(asked) == [stopped, last]
    assert waited == [[well]]
    assert (stopped.sent, well.sent, last.sent) == ([], ["usage"], [])
