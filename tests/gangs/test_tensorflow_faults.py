"""TensorFlow's gangs end when a role does, in time, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import psutil
import pytest

from fwbench.errors import GangFailed
from fwbench.gangs import gang as gangs
from fwbench.gangs.gang import Gang
from fwbench.gangs.launch import Local
from fwbench.gangs.shares import Task
from support.gangs import SOON, Robbed, composition, started

_TASK = asdict(Task("mlp_step", 16, "cpu", "graph", "float32", sparse=False))
_SERVED = {"strategy": "ps_async", "servers": 1, "coordinator": "coordinator"}
_PATIENCE_S = 300.0

#: Steps that a gang does not take in the time of a test.
_FOR_EVER = 10**5


@pytest.fixture
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    """A gang of a composition that has taken a step."""
    made = started(2, "tensorflow", **request.param)
    made.ask("bind", _TASK, limit_s=_PATIENCE_S, doing="building")
    made.ask("round", 1, limit_s=_PATIENCE_S, doing="its first step")
    yield made
    made.close()


def _gone(pids: list[int]) -> bool:
    """True when none of these processes is left."""
    until_s = time.monotonic() + _PATIENCE_S
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < until_s:
        time.sleep(0.02)
    return not any(map(psutil.pid_exists, pids))


@pytest.mark.parametrize(
    ("gang", "position", "said"),
    [
        ({}, 1, "^worker 1 of 2 was killed by SIGKILL .*while stepping"),
        (_SERVED, 2, "^server 0 of 1 was killed by SIGKILL .*while stepping"),
    ],
    indirect=["gang"],
    ids=["worker", "server"],
)
def test_a_killed_role_ends_the_gang(gang: Gang, position: int, said: str) -> None:
    """Long before any limit; what others run into follows."""
    pids = gang.pids
    threading.Timer(0.3, os.kill, (pids[position], signal.SIGKILL)).start()
    with pytest.raises(GangFailed, match=said):
        gang.ask("round", _FOR_EVER, limit_s=_PATIENCE_S, doing="stepping")
    assert _gone(pids)


@pytest.mark.parametrize(
    ("gang", "position", "said"),
    [
        ({}, 1, "worker 1 of 2 did not answer within 1 s while stepping"),
        (_SERVED, 1, "^worker 1 of 2 and the coordinator did not answer within 1 s"),
    ],
    indirect=["gang"],
    ids=["worker", "worker of servers"],
)
def test_a_stopped_role_ends_the_gang(gang: Gang, position: int, said: str) -> None:
    """Only the limit notices it; it is named though it is not the one that takes steps."""
    pids = gang.pids
    os.kill(pids[position], signal.SIGSTOP)
    with pytest.raises(GangFailed, match=said):
        gang.ask("round", _FOR_EVER, limit_s=1.0, doing="stepping")
    assert _gone(pids)


class _Meddled(Gang):
    """A gang of which a role gets a signal before it joins the others."""

    signal = signal.SIGKILL
    every_pid: list[int]

    def ask(self, kind: str, *values: Any, **how: Any) -> list[Any]:
        if kind == "join":
            self.every_pid = self.pids
            os.kill(self.every_pid[-1], self.signal)
            how["limit_s"] = 1.0 if self.signal == signal.SIGSTOP else _PATIENCE_S
        return super().ask(kind, *values, **how)


@pytest.mark.parametrize(
    ("number", "more", "said"),
    [
        (signal.SIGKILL, {}, "worker 1 of 2 was killed by SIGKILL .* while joining the others"),
        (
            signal.SIGSTOP,
            _SERVED,
            "the coordinator did not answer within 1 s while joining the others",
        ),
    ],
    ids=["killed", "stopped"],
)
def test_a_role_that_fails_before_it_joins(
    number: signal.Signals, more: dict[str, Any], said: str
) -> None:
    """The others would wait for it: TensorFlow's servers for ever."""
    gang = _Meddled(composition(2, "tensorflow", **more), Local(), SOON)
    gang.signal = number
    with pytest.raises(GangFailed, match=said):
        gang.start()
    assert _gone(gang.every_pid)


def test_a_port_that_somebody_took_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what TensorFlow says of it; it would be started again."""
    monkeypatch.setattr(gangs, "_STARTS", 1)
    gang = Robbed(composition(2, "tensorflow"), Local(), SOON)
    with pytest.raises(GangFailed, match=r"took the ports of a gang 1 times: .* gRPC server"):
        gang.start()
    assert _gone([*gang.every_pid])


def test_another_tensorflow_is_refused() -> None:
    """Before anything is built; the message says who has what."""
    said = (
        r"the same versions, and have worker 0 .* tensorflow 2\.\d+.*controller: .* tensorflow 0\.1"
    )
    with pytest.raises(GangFailed, match=said):
        started(2, "tensorflow", version="0.1")
