"""A worker as its parent sees it, where the system does not do what it should."""

import os
import signal
import socket
import subprocess
import time

import pytest

from fwbench.errors import WorkerDied
from fwbench.workers import process
from fwbench.workers.process import WorkerProcess, WorkerSpec


class Unkillable:
    """A Popen of a process that its driver holds: it dies of no signal."""

    pid = 2**22 + 1  # no process has it
    stdin = None

    def __init__(self, *_: object, pass_fds: tuple[int, ...], **__: object) -> None:
        self._connection = os.dup(pass_fds[0])  # open, as long as it is alive

    def poll(self) -> None:
        """It is alive."""

    def send_signal(self, number: int) -> None:
        """Nothing comes of it."""

    def wait(self, timeout: float | None = None) -> int:
        assert timeout is not None, "waited without a limit"
        raise subprocess.TimeoutExpired("worker", timeout)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> WorkerProcess:
    monkeypatch.setattr(subprocess, "Popen", Unkillable)
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    return WorkerProcess(WorkerSpec("stuck"), 1)


def test_a_worker_that_cannot_be_ended_is_left_behind(worker: WorkerProcess) -> None:
    """Its session goes on: nothing waits for it without a limit."""
    worker.kill()


def test_a_worker_that_cannot_be_ended_is_reported(worker: WorkerProcess) -> None:
    with pytest.raises(WorkerDied, match=r"did not finish and was ended, and is still there 10 s"):
        worker.receive(time.monotonic(), "did not finish")


def test_a_worker_that_is_stopped_while_it_imports_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not after the five minutes that an import may take; and who knows why says so."""
    monkeypatch.setattr(process, "_STOPPED_S", 0.3)
    importing = WorkerProcess(WorkerSpec("numpy"), 1)
    os.kill(importing._process.pid, signal.SIGSTOP)
    with pytest.raises(WorkerDied, match=r"numpy was stopped \(SIGSTOP, .* while starting numpy"):
        importing.load()
    assert not importing.is_alive()


@pytest.mark.parametrize(("framework", "spins"), [("numpy", True), ("mxnet@1.9", False)])
def test_numpy_spins_where_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, framework: str, spins: bool
) -> None:
    """Elsewhere its products are references, and their threads would slow what is measured."""
    given: dict[str, str] = {}
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    monkeypatch.setattr(process, "Process", lambda _, variables, **__: given.update(variables))
    local, remote = socket.socketpair()
    with local, remote:
        process._started(WorkerSpec(framework), 1, remote, inherit_output=False)
    assert ("OPENBLAS_THREAD_TIMEOUT" not in given) is spins
