"""MXNet's replicas train as one worker does, by way of servers; each way not to is found."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench.errors import (
    GangFailed,
    VerificationError,
    WrongGradient,
    WrongTraining,
)
from fwbench.gangs import checks
from fwbench.gangs import gang as gangs
from fwbench.gangs.checks import Answers
from fwbench.gangs.gang import Composition, Gang
from fwbench.gangs.launch import Local
from fwbench.gangs.shares import Task
from fwbench.workloads import lenet, mlp
from fwbench.workloads.models.steps import ModelStep
from support import served_steps
from support.gangs import LANGUAGE_MODELS, SOON, Robbed, installed, trains_as_one

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 120.0
_FOR_EVER = 10**9


def _composition(strategy: str, replicas: int = 2, *, updating: bool = True) -> Composition:
    return Composition("cheating", strategy, replicas, 1, 1, "scheduler", updating=updating)


@pytest.fixture(scope="module", autouse=True)
def _cheating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A framework whose mistakes depend on the batch, for processes that begin from now on."""
    folder = tmp_path_factory.mktemp("installed")
    installed(folder, "cheating", "support.cheating_mxnet:CheatingMXNet")
    with pytest.MonkeyPatch.context() as patch:
        path = [str(folder), str(_TESTS), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        yield


@contextmanager
def _started(composition: Composition) -> Iterator[Gang]:
    gang = Gang(composition, Local(), SOON)
    gang.start()
    try:
        yield gang
    finally:
        gang.close()


@pytest.fixture(scope="module")
def synchronous() -> Iterator[Gang]:
    """Two workers, a server and the scheduler."""
    with _started(_composition("ps_sync")) as gang:
        yield gang


@pytest.fixture(scope="module")
def asynchronous() -> Iterator[Gang]:
    """The same, with workers that do not wait for each other."""
    with _started(_composition("ps_async")) as gang:
        yield gang


def _bind(gang: Gang, name: str, size: int, **changes: Any) -> None:
    task = asdict(Task(name, size, "cpu", "eager", "float32", sparse=False)) | changes
    gang.ask("bind", task, limit_s=_PATIENCE_S, doing="building")


def _checked(gang: Gang, name: str, batch: int, updates: int, **changes: Any) -> Answers:
    """The results of all workers in ten steps; the server's updates are judged."""
    _bind(gang, name, batch, **changes)
    before = gang.usage()
    answers = gang.ask("check", 10, limit_s=_PATIENCE_S, doing="checking")
    checked = checks.served(before, gang.usage(), updates, "before the timing")
    assert checked.updates == updates
    return answers


def _judged(gang: Gang, objective: Any, batch: int, **changes: Any) -> float:
    """The distance of the mean losses from those of one worker."""
    answers = _checked(gang, f"{objective.name}_step", batch, 10, **changes)
    found, checked = checks.training(answers, objective, batch, "float32", "before the timing")
    assert checked.gradient_error < 1e-4
    return float(found.max_loss_deviation)


def test_two_workers_train_as_one(synchronous: Gang) -> None:
    """Losses, gradients and weights; several models, and one model twice, on the same servers."""
    assert _judged(synchronous, lenet, 80) < 1e-5
    assert _judged(synchronous, mlp, 80) < 1e-5
    assert _judged(synchronous, lenet, 80, execution="hybridize") < 1e-5


@LANGUAGE_MODELS
def test_a_language_model_is_shared(synchronous: Gang, step: ModelStep) -> None:
    """With a softmax over all words, or over a few."""
    assert trains_as_one(synchronous, step, "eager", _PATIENCE_S).max_loss_deviation < 1e-5


def test_what_processes_send_is_counted(synchronous: Gang) -> None:
    """Each worker all gradients, and the server all weights to each worker."""
    before = synchronous.usage()
    answers = _checked(synchronous, "lenet_step", 80, 10)
    sent = checks.sent(answers, before, synchronous.usage())
    assert sent is None or sent >= 10 * 2 * 2 * 4 * lenet.parameters


def test_servers_update_once_in_every_timed_step(synchronous: Gang) -> None:
    """By their own count; the weights are equal afterwards."""
    _bind(synchronous, "lenet_step", 80)
    synchronous.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
    before = synchronous.usage()
    synchronous.ask("round", 7, limit_s=_PATIENCE_S, doing="stepping")
    assert checks.served(before, synchronous.usage(), 7, "timed").updates == 7
    left = synchronous.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying")
    checks.same_weights(left, "after the timing")


@pytest.mark.parametrize(
    ("batch", "error", "said"),
    [
        (16, WrongGradient, "what 2 replicas exchange is wrong: the gradient by parameter 0"),
        (32, WrongGradient, "what 2 replicas exchange is wrong: the gradient by parameter 0"),
        (48, WrongTraining, "worker 1 has other weights than worker 0 before the first step"),
        (64, WrongTraining, "worker 1 has other weights than worker 0 after step 3"),
    ],
    ids=["exchanges nothing", "adds up", "begins otherwise", "skips an update"],
)
def test_cheats_are_found(
    synchronous: Gang, batch: int, error: type[VerificationError], said: str
) -> None:
    """By what is checked before anything is timed."""
    _bind(synchronous, "lenet_step", batch)
    answers = synchronous.ask("check", 10, limit_s=_PATIENCE_S, doing="checking")
    with pytest.raises(error, match=said):
        checks.training(answers, lenet, batch, "float32", "before the timing")


def test_updates_by_the_workers_themselves_are_found(synchronous: Gang) -> None:
    """With ``update_on_kvstore=False`` servers only add up, whatever the weights are."""
    said = "servers were to update every array 10 times, and have done so 0 times"
    with pytest.raises(WrongTraining, match=said):
        _checked(synchronous, "lenet_step", 96, 10)


def test_three_workers_train_as_one() -> None:
    """Two networks."""
    with _started(_composition("ps_sync", 3)) as gang:
        assert _judged(gang, lenet, 120) < 1e-5
        assert _judged(gang, mlp, 120) < 1e-5


def test_workers_that_do_not_wait_learn(asynchronous: Gang) -> None:
    """One alone does the work of one process; servers make every update of all."""
    gang = asynchronous
    for objective in (lenet, mlp):
        answers = _checked(gang, f"{objective.name}_step", 80, 10 + 20)
        found, checked = checks.asynchronous(answers, objective, 40, "float32", "before the timing")
        assert found.max_loss_deviation < 1e-5
        assert checked.gradient_error < 1e-4
    before = gang.usage()
    gang.ask("round", 7, limit_s=_PATIENCE_S, doing="stepping")
    assert checks.served(before, gang.usage(), 14, "timed").updates == 14


def test_sums_of_arrays_are_right() -> None:
    """Servers add up; what is exchanged is checked before and after timed steps."""
    with _started(_composition("ps_sync", updating=False)) as gang:
        for dtype in ("float32", "float64"):
            _bind(gang, "all_reduce", 1001, dtype=dtype)
            before = gang.usage()
            answers = gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
            sent = checks.sent(answers, before, gang.usage())
            assert sent is None or sent >= 3 * 2 * 2 * 4 * 1001
            gang.ask("round", 3, limit_s=_PATIENCE_S, doing="stepping")
            left = gang.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying")
            assert left == [{}, {}]


# Null steps and sparse reads


@pytest.fixture(params=["synchronous", "asynchronous"])
def served(request: pytest.FixtureRequest) -> Gang:
    """A gang of either kind."""
    gang: Gang = request.getfixturevalue(request.param)
    return gang


@served_steps.HONEST
def test_steps_that_compute_nothing_are_right(
    served: Gang, name: str, size: int, bytes_each: int
) -> None:
    """Before and after steps that are timed, in lock-step or not."""
    served_steps.are_right(served, _bind, name, size, bytes_each)


@served_steps.CHEATING
def test_steps_that_leave_something_out_are_found(
    served: Gang, name: str, size: int, said: str
) -> None:
    """By what is checked before anything is timed."""
    served_steps.are_found(served, _bind, name, size, said)


# Faults

_NAMES = ("worker 0 of 2", "worker 1 of 2", "server 0 of 1", "the scheduler")


def _fail(gang: Gang, place: int, number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(gang.pids[place], number)


def _gone(pids: list[int]) -> bool:
    _, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], 30.0
    )
    return not alive


@pytest.mark.parametrize("place", [1, 2, 3], ids=["worker", "server", "scheduler"])
def test_a_role_that_is_killed_ends_the_gang(place: int) -> None:
    """Long before any limit, and by its name; no process is left."""
    with _started(_composition("ps_sync")) as gang:
        pids = gang.pids
        _bind(gang, "lenet_step", 80)
        threading.Timer(0.3, _fail(gang, place, signal.SIGKILL)).start()
        with pytest.raises(GangFailed, match=f"^{_NAMES[place]} was killed by SIGKILL"):
            gang.ask("round", _FOR_EVER, limit_s=600.0, doing="stepping")
        assert _gone(pids)


@pytest.mark.parametrize("place", [1, 2], ids=["worker", "server"])
def test_a_role_that_is_stopped_ends_the_gang(place: int) -> None:
    """At the limit, as nobody notices; it is named among those that do not answer."""
    with _started(_composition("ps_sync")) as gang:
        pids = gang.pids
        _bind(gang, "lenet_step", 80)
        _fail(gang, place, signal.SIGSTOP)()
        with pytest.raises(GangFailed, match=f"{_NAMES[place]}.* did not answer within 2 s"):
            gang.ask("round", 10, limit_s=2.0, doing="stepping")
        assert _gone(pids)


class _Failing(Gang):
    """A gang of which a role fails when all have started, before they join each other."""

    def __init__(self, place: int, number: signal.Signals) -> None:
        super().__init__(_composition("ps_sync"), Local(), SOON)
        self.failing = place, number
        self.every_pid: list[int] = []

    def ask(self, kind: str, *values: Any, **how: Any) -> list[Any]:
        if kind == "join":
            self.every_pid = self.pids
            _fail(self, *self.failing)()
            how["limit_s"] = 3.0
        return super().ask(kind, *values, **how)


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [
        (2, signal.SIGKILL, "^server 0 of 1 was killed by SIGKILL .*while joining the others"),
        (3, signal.SIGSTOP, "the scheduler did not answer within 3 s while joining the others"),
    ],
    ids=["server killed", "scheduler stopped"],
)
def test_a_role_that_fails_before_it_joins(place: int, number: signal.Signals, said: str) -> None:
    """The others would wait for it; the limit of the start ends them all."""
    gang = _Failing(place, number)
    with pytest.raises(GangFailed, match=said):
        gang.start()
    assert _gone(gang.every_pid)


def test_a_port_that_somebody_took_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler ends at once instead of keeping all waiting; it would be started again."""
    monkeypatch.setattr(gangs, "_STARTS", 1)
    gang = Robbed(_composition("ps_sync"), Local(), SOON)
    said = "took the ports of a gang 1 times: the scheduler ended with exit status 1 .*bind failed"
    with pytest.raises(GangFailed, match=f"(?s){said}"):
        gang.start()
    assert _gone([*gang.every_pid])


def test_another_mxnet_is_refused() -> None:
    """Servers and the scheduler, too, before anything is built."""
    gang = Gang(replace(_composition("ps_sync"), version="0.1"), Local(), SOON)
    said = r"the same versions.*; the scheduler on .* cheating 1\.9.*controller: .* cheating 0\.1"
    with pytest.raises(GangFailed, match=said):
        gang.start()
