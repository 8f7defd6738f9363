"""A worker process as its parent sees it: started, sent messages, and ended."""

import errno
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from fwbench.errors import (
    FrameworkBroken,
    FrameworkMissing,
    FrameworkUnavailable,
    IsolationError,
    WorkerDied,
)
from fwbench.machine import reference_variables, thread_variables
from fwbench.measure.resources import processors_s
from fwbench.processes.channel import Channel
from fwbench.processes.process import KILL_TIMEOUT_S, Process, python
from fwbench.terms.names import framework_of
from fwbench.version import __version__

#: How long a framework may take to be imported, and a worker to begin its session.
START_TIMEOUT_S = 300.0

#: How long a worker may take to tear down its fixtures when it is asked to stop.
_STOP_TIMEOUT_S = 10.0

#: How long a worker may be stopped before it does a case, which has a deadline of its own.
_STOPPED_S = 30.0

#: How often a silent worker is checked for having died.
_POLL_S = 0.2

#: How long the rest of a message may take, also after the deadline.
_PART_S = 1.0

#: How long a worker gets to write its traceback before it is ended.
_TRACEBACK_S = 0.5

#: The resource that is exhausted where the system refuses to start a process, and its limit.
_SHORT_OF = {
    errno.EAGAIN: "processes (ulimit -u, or the pids.max of a container)",
    errno.EMFILE: "open files (ulimit -n)",
    errno.ENFILE: "open files (sysctl fs.file-max)",
    errno.ENOMEM: "memory (ulimit -v, or the limit of a container)",
}

#: Called several times a second while a worker is waited for, with its activity:
#: ``starting torch``; empty while it does a case.
Tick = Callable[[str], Any]

#: GPUs are numbered as NVML and nvidia-smi number them, in every framework: CUDA's own order begins
#: with the one that it takes for the fastest.
_DEFAULTS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

#: What a worker runs. A string, because imports do not run up to the plugin's room.
WORKER_MAIN = "from fwbench.plugin.worker import main; main()"


class WorkerSpec(NamedTuple):
    """The specification of a worker; a session has one worker for each."""

    framework: str
    variables: tuple[tuple[str, str], ...] = ()
    interpreter: str = sys.executable
    #: The toggles of the gang that does its cases; empty if it does them alone.
    gang: tuple[tuple[str, str], ...] = ()
    #: Tells workers of the same framework apart, whose cases take turns.
    number: int = 0


class WorkerProcess:
    """A process that has one framework, and runs cases of it.

    Args:
        threads: the threads that it computes with, set before the import.
        inherit_output: whether it writes to the session's own output, as with ``-s``.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        threads: int,
        *,
        inherit_output: bool = False,
        tick: Tick = lambda _: None,
    ) -> None:
        self.framework = spec.framework
        #: Whether its session of pytest waits for cases.
        self.has_begun = False
        self._going_s = time.monotonic()
        self._tick = tick
        self._doing = f"starting {spec.framework}"
        try:
            with ExitStack() as unstarted:
                own_end, other_end = map(unstarted.enter_context, socket.socketpair())
                self._process = _started(spec, threads, other_end, inherit_output=inherit_output)
                unstarted.pop_all()
        except OSError as error:
            raise _not_started(spec.interpreter, error) from error
        other_end.close()
        self._channel = Channel(own_end)

    def send(self, kind: str, *values: Any) -> None:
        """Send a message to the worker.

        Raises:
            WorkerDied: the worker has ended.
        """
        try:
            self._channel.send(kind, *values)
        except OSError:
            raise self._died() from None

    def receive(self, deadline: float, overdue: str) -> list[Any]:
        """Wait for a message: its kind and its values.

        Args:
            deadline: until when, in the time of ``time.monotonic``; the worker is ended then.
            overdue: the clause of the error message if it is late: ``did not ...``.

        Raises:
            WorkerDied: the worker ended, sent nothing in time, or something else than a message.
        """
        self._going_s = time.monotonic()
        while (message := self.received(deadline, overdue, _POLL_S)) is None:
            pass
        return message

    def received(self, deadline: float, overdue: str, wait_s: float = 0.0) -> list[Any] | None:
        """A message as of :meth:`receive`; None if none comes within ``wait_s`` seconds."""
        self._tick(self._doing)
        if self._channel.readable(min(wait_s, max(0.0, deadline - time.monotonic()))):
            return self._message(deadline, overdue)
        self._tick(self._doing)
        if not (self._doing and self._process.is_stopped()):
            self._going_s = time.monotonic()
        elif time.monotonic() >= self._going_s + _STOPPED_S:
            raise self._ended(
                f"was stopped (SIGSTOP, or a debugger) while {self._doing}; after "
                f"{_STOPPED_S:g} s it was ended"
            )
        if not self._process.is_alive() and not self._channel.readable():
            raise self._died()
        if time.monotonic() >= deadline:
            self._process.ask_for_traceback()
            self._process.ending(_TRACEBACK_S)
            raise self._ended(f"{overdue} and was ended")
        return None

    def _message(self, deadline: float, overdue: str) -> list[Any]:
        try:
            # The rest of a message follows its beginning, unless a test has written that.
            return self._channel.receive(max(_PART_S, deadline - time.monotonic()))
        except TimeoutError:
            raise self._ended(f"{overdue} and was ended") from None
        except IsolationError as error:
            raise self._ended(
                f"{error}; it was ended. Does the test write to a descriptor that is not its own?"
            ) from None
        except (EOFError, OSError):
            raise self._died() from None

    def fileno(self) -> int:
        """A descriptor that becomes readable when it has said something, or has ended."""
        return self._channel.fileno()

    def use(self) -> tuple[float, float]:
        """The time, and processor time of the worker: its code can replace its own readings."""
        return time.perf_counter(), processors_s(self._process.pid)

    def load(self) -> None:
        """Wait until the framework is imported.

        Raises:
            FrameworkUnavailable: it cannot be imported, or its environment has another version of
                fwbench, which might measure differently.
            WorkerDied: the worker died meanwhile.
        """
        kind, *arguments = self.receive(
            time.monotonic() + START_TIMEOUT_S, f"did not import it within {START_TIMEOUT_S:g} s"
        )
        if kind == "unavailable":
            reason, remedy, missing = arguments
            raise (FrameworkMissing if missing else FrameworkUnavailable)(reason, remedy)
        if arguments != [__version__]:
            raise FrameworkBroken(
                f"its environment has fwbench {' '.join(arguments)}, and this is {__version__}",
                "recreate it: fwbench env remove, then fwbench env add",
            )

    def begin_session(self, session: dict[str, Any]) -> None:
        """Have the worker begin its session of pytest, and do not wait for it."""
        self.send("session", session)

    def until_begun(self) -> Iterator[list[Any]]:
        """Yield the messages of the worker until its session waits for cases."""
        until_s = time.monotonic() + START_TIMEOUT_S
        overdue = f"did not begin its session within {START_TIMEOUT_S:g} s"
        while (message := self.receive(until_s, overdue))[0] != "begun":
            yield message
        self.has_begun = True

    def mark(self) -> None:
        """Begin a new case: the tail of the output begins here."""
        self._doing = ""
        self._process.mark()

    def tail(self) -> str:
        """The last lines that the worker wrote since the mark, ready to append to a message."""
        return self._process.tail()

    def dismiss(self) -> None:
        """Let the worker tear down its fixtures and end, while others do."""
        self._channel.close()

    def stop(self) -> None:
        """Let the worker tear down its fixtures, and end it."""
        self.dismiss()
        try:
            self._process.ending(_STOP_TIMEOUT_S)
        finally:
            self.kill()

    def is_alive(self) -> bool:
        """Return whether the process is still running."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End the worker and all that it has started."""
        self._process.kill()
        self._channel.close()

    def _died(self) -> WorkerDied:
        # The connection closes a moment before the process has ended.
        return self._ended(self._process.ending(_STOP_TIMEOUT_S) or "closed its connection")

    def _ended(self, how: str) -> WorkerDied:
        tail = self.tail()
        self.kill()
        if self.is_alive():
            how += (
                f", and is still there {KILL_TIMEOUT_S:g} s after SIGKILL, with its memory: a "
                "driver holds it, as after a GPU has hung (see dmesg)"
            )
        return WorkerDied(f"the worker of {self.framework} {how}", tail)


def _started(
    spec: WorkerSpec, threads: int, connection: socket.socket, *, inherit_output: bool
) -> Process:
    measures_numpy = framework_of(spec.framework) == "numpy"
    defaults = _DEFAULTS if measures_numpy else {**_DEFAULTS, **reference_variables()}
    return Process(
        [
            *(spec.interpreter, *python(WORKER_MAIN)),
            *(str(connection.fileno()), spec.framework, str(threads)),
        ],
        {**defaults, **os.environ, **thread_variables(threads), **dict(spec.variables)},
        connection=connection,
        inherits_output=inherit_output,
        # Ctrl-C reaches the parent alone, which then ends the whole group.
        own_session=True,
    )


def _not_started(interpreter: str, error: OSError) -> FrameworkBroken:
    if error.filename == interpreter:
        return FrameworkBroken(f"its interpreter does not run: {error}")
    scarce = _SHORT_OF.get(error.errno or 0)
    remedy = f"allow more {scarce}" if scarce else ""
    return FrameworkBroken(f"its process cannot be started: {error}", remedy)
