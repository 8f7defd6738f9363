"""Worker processes, started when first needed, replaced when they die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Pipe
from typing import Any, NamedTuple

from fwbench import __version__
from fwbench.environment import thread_variables
from fwbench.errors import (
    FrameworkBroken,
    FrameworkMissing,
    FrameworkUnavailable,
    IsolationError,
    WorkerDied,
)
from fwbench.frameworks.manifest import Absent, Manifest
from fwbench.isolation.channel import Channel

#: How long a framework may take to be imported.
_START_TIMEOUT_S = 300.0
#: How long a worker may take to tear down its fixtures when it is told to stop.
_STOP_TIMEOUT_S = 10.0
#: How often a silent worker is looked at.
_LOOK_EVERY_S = 0.2
#: How long a worker gets to write its traceback before it is ended.
_TRACEBACK_S = 0.5
_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 30
#: Frames of pytest and of the worker at the foot of every traceback, and what follows them.
_HARNESS_FRAME = re.compile(
    r"""\s*File\ "(.*[/\\](_pytest|pluggy|pytest_benchmark|fwbench[/\\]isolation)[/\\]|<string>)
    |Extension\ modules:""",
    re.VERBOSE,
)
#: A framework whose workers die this often before they are ready is not tried again.
_START_ATTEMPTS = 2


class Spec(NamedTuple):
    """Which worker: there is one for each.

    Attributes:
        framework: what it loads.
        environment: environment variables, and their values, that are set before it does.
        interpreter: what runs it.
    """

    framework: str
    environment: tuple[tuple[str, str], ...] = ()
    interpreter: str = sys.executable


class WorkerProcess:
    """One worker process.

    Args:
        spec: what it is to load, and with which environment.
        threads: the threads that it is to compute with, set before the import.
        inherit_output: whether it writes to the session's own output, as with ``-s``.
    """

    def __init__(self, spec: Spec, threads: int, *, inherit_output: bool = False) -> None:
        self.framework = spec.framework
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        self._mark = 0
        ours, theirs = Pipe()
        self._channel = Channel(ours)
        self._process = subprocess.Popen(
            [
                # -P: a torch.py in the current folder is not PyTorch.
                *(
                    spec.interpreter,
                    "-P",
                    "-c",
                    "from fwbench.isolation.worker import main; main()",
                ),
                *(str(theirs.fileno()), spec.framework, str(threads)),
            ],
            env={**os.environ, **thread_variables(threads), **dict(spec.environment)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=None if inherit_output else self._log,
            stderr=self._log,
            # Ctrl-C reaches the parent alone, which then ends the whole group.
            start_new_session=True,
        )
        theirs.close()

    def send(self, kind: str, *values: Any) -> None:
        """Send a message.

        Raises:
            WorkerDied: there is nobody to receive it.
        """
        try:
            self._channel.send(kind, *values)
        except OSError:
            raise self._died() from None

    def receive(self, deadline: float, overdue: str) -> list[Any]:
        """Wait for a message.

        Args:
            deadline: until when, in the time of ``time.monotonic``; the worker is ended then.
            overdue: what it did not do, for the message.

        Raises:
            WorkerDied: the worker ended, or said nothing in time.
        """
        while not self._readable(deadline):
            if self._process.poll() is not None and not self._channel.readable():
                raise self._died()
            if time.monotonic() >= deadline:
                self._ask_for_traceback()
                raise self._ended(f"{overdue} and was ended")
        try:
            return self._channel.receive()
        except (EOFError, OSError):
            raise self._died() from None

    def _readable(self, deadline: float) -> bool:
        return self._channel.readable(min(_LOOK_EVERY_S, max(0.0, deadline - time.monotonic())))

    def load(self) -> None:
        """Wait until the framework is imported.

        Raises:
            FrameworkUnavailable: it cannot be, or the environment that it is in has another
                fwbench, which would measure otherwise.
            WorkerDied: the worker died of it.
        """
        kind, *arguments = self.receive(
            time.monotonic() + _START_TIMEOUT_S,
            f"did not import it within {_START_TIMEOUT_S:g} s",
        )
        if kind == "unavailable":
            *why, missing = arguments
            raise (FrameworkMissing if missing else FrameworkUnavailable)(*why)
        if arguments != [__version__]:
            raise FrameworkBroken(
                f"its environment has fwbench {' '.join(arguments)}, and this is {__version__}",
                "make it anew: fwbench env remove, then fwbench env add",
            )

    def mark(self) -> None:
        """Begin a new case: the tail of the output begins here."""
        self._mark = os.fstat(self._log.fileno()).st_size

    def tail(self) -> str:
        """The last lines that the worker wrote since the mark, ready to append to a message."""
        # Not by seeking: the worker writes at the offset that it shares with this file.
        descriptor = self._log.fileno()
        end = os.fstat(descriptor).st_size
        start = max(self._mark, end - _TAIL_BYTES)
        written = os.pread(descriptor, end - start, start)
        lines = [
            line
            for line in written.decode(errors="replace").rstrip().splitlines()
            if not _HARNESS_FRAME.match(line)
        ]
        if not lines:
            return "; it wrote nothing to its standard error"
        return "; the end of what it wrote:\n" + "\n".join(lines[-_TAIL_LINES:])

    def stop(self) -> None:
        """Let the worker tear down what it has set up, and end it."""
        self._channel.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_TIMEOUT_S)
        finally:
            self.kill()

    def is_alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the worker and whatever it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()
        self._log.close()

    def _ask_for_traceback(self) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_TRACEBACK_S)

    def _died(self) -> WorkerDied:
        # The connection closes a moment before the process has ended.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_TIMEOUT_S)
        return self._ended(_ending(self._process.poll()))

    def _ended(self, how: str) -> WorkerDied:
        problem = WorkerDied(f"the worker of {self.framework} {how}{self.tail()}")
        self.kill()
        return problem


def _ending(status: int | None) -> str:
    if status is None:
        return "closed its connection"
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    if name == "SIGKILL":
        return "was killed by SIGKILL (often the kernel's, for lack of memory)"
    return f"was ended by {name}"


def describe(
    names: Sequence[str],
    threads: int,
    interpreter_of: Callable[[str], str] = lambda _: sys.executable,
) -> dict[str, Manifest | Absent]:
    """Ask frameworks what they are and have, each in a process of its own, all at once.

    Nothing is timed then, so they need not take turns.

    Args:
        names: of the frameworks.
        threads: of each.
        interpreter_of: which interpreter has a framework.
    """
    workers: dict[str, WorkerProcess] = {}
    try:
        absent = {}
        for name in names:
            try:
                spec = Spec(name, interpreter=interpreter_of(name))
                workers[name] = WorkerProcess(spec, threads)
            except OSError as error:
                absent[name] = Absent(name, f"its interpreter does not run: {error}", "")
        return absent | {name: _described(worker) for name, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.kill()


def _described(worker: WorkerProcess) -> Manifest | Absent:
    try:
        worker.load()
        worker.send("describe")
        _, values = worker.receive(
            time.monotonic() + _START_TIMEOUT_S,
            f"did not describe it within {_START_TIMEOUT_S:g} s",
        )
    except FrameworkUnavailable as error:
        return Absent.because(worker.framework, error)
    except WorkerDied as error:
        return Absent(worker.framework, f"does not import: {error}", "")
    return replace(Manifest.from_json(values), name=worker.framework)


class Workers:
    """The workers of a session: one a framework, one case at a time over all of them.

    Args:
        session_of: makes the session that a framework's worker is to begin.
        threads: of every framework.
        inherit_output: whether they write to the session's own output.
    """

    def __init__(
        self, session_of: Callable[[Spec], dict[str, Any]], threads: int, *, inherit_output: bool
    ) -> None:
        self._session_of = session_of
        self._threads = threads
        self._inherit_output = inherit_output
        self._running: dict[Spec, WorkerProcess] = {}
        self._failed_starts: dict[Spec, list[FrameworkUnavailable]] = {}

    def run(
        self, spec: Spec, nodeid: str, following: str | None, timeout_s: float
    ) -> Iterator[list[Any]]:
        """Run one case and pass on what its worker sends.

        Args:
            spec: which worker.
            nodeid: which case.
            following: the next case of the same worker; it decides which fixtures stay.
            timeout_s: how long the case may take, counted anew from every epoch that it reports.

        Raises:
            FrameworkUnavailable: the worker cannot be started.
            WorkerDied: it died of this case, or took too long; the next case gets a fresh one.
            IsolationError: it does not know the case.
        """
        worker = self._ready(spec)
        worker.mark()
        try:
            worker.send("run", nodeid, following)
            deadline = time.monotonic() + timeout_s
            while True:
                message = worker.receive(
                    deadline, f"did not finish the case within {timeout_s:g} s (--fw-timeout)"
                )
                if message[0] == "done":
                    break
                if message[0] == "epoch":
                    deadline = time.monotonic() + timeout_s
                yield message
        except WorkerDied:
            self._running.pop(spec).kill()
            raise
        if message[1] is not None:
            raise IsolationError(message[1])

    def _ready(self, spec: Spec) -> WorkerProcess:
        worker = self._running.get(spec)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:  # it died between two cases: neither is to blame
            self._running.pop(spec).kill()
        failures = self._failed_starts.setdefault(spec, [])
        if len(failures) >= _START_ATTEMPTS:
            raise failures[-1]
        try:
            return self._started(spec)
        except (FrameworkUnavailable, WorkerDied, OSError) as error:
            if spec in self._running:
                self._running.pop(spec).kill()
            failures.append(
                FrameworkBroken(f"the worker of {spec.framework} did not start: {error}")
            )
            raise failures[-1] from error

    def _started(self, spec: Spec) -> WorkerProcess:
        worker = WorkerProcess(spec, self._threads, inherit_output=self._inherit_output)
        # Known before it is ready, so that Ctrl-C meanwhile ends it too.
        self._running[spec] = worker
        worker.load()
        worker.send("session", self._session_of(spec))
        return worker

    def stop(self) -> None:
        """End all workers, letting them tear down their fixtures."""
        for spec in [*self._running]:
            self._running[spec].stop()
            del self._running[spec]

    def kill(self) -> None:
        """End all workers at once."""
        while self._running:
            self._running.popitem()[1].kill()
