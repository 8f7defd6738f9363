"""A worker process as its parent sees it: started, sent messages, listened to, ended."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from fwbench.errors import (
    FrameworkBroken,
    FrameworkMissing,
    FrameworkUnavailable,
    IsolationError,
    WorkerDied,
)
from fwbench.machine import reference_variables, thread_variables
from fwbench.names import framework_of
from fwbench.processes.channel import Channel
from fwbench.processes.output import Output, ending
from fwbench.version import __version__

#: How long a framework may take to be imported, and a worker to begin its session.
START_TIMEOUT_S = 300.0

#: How long a worker may take to tear down its fixtures when it is asked to stop.
_STOP_TIMEOUT_S = 10.0

#: How long a process may take to die of SIGKILL.
_KILL_TIMEOUT_S = 10.0

#: How often a silent worker is checked for having died.
_POLL_S = 0.2

#: How long the rest of a message may take, whatever the deadline.
_PART_S = 1.0

#: How long a worker gets to write its traceback before it is ended.
_TRACEBACK_S = 0.5

#: What there is too little of where the system refuses to start a process, and where it is set.
_SHORT_OF = {
    errno.EAGAIN: "processes (ulimit -u, or the pids.max of a container)",
    errno.EMFILE: "open files (ulimit -n)",
    errno.ENFILE: "open files (sysctl fs.file-max)",
    errno.ENOMEM: "memory (ulimit -v, or the limit of a container)",
}

#: Called several times a second while a worker is waited for, with what it is doing unless that is
#: a case: ``starting torch``.
Tick = Callable[[str], Any]

#: GPUs are numbered as NVML and nvidia-smi number them, in every framework: CUDA's own order puts
#: first which it takes for the fastest.
_DEFAULTS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

#: What a worker runs. A string, because imports do not run up to the plugin's room.
WORKER_MAIN = "from fwbench.plugin.worker import main; main()"


class WorkerSpec(NamedTuple):
    """What tells workers apart: a session has one worker for each specification.

    Attributes:
        framework: the framework that it loads.
        variables: the environment variables that are set before it does, with their values.
        interpreter: the Python that runs it.
        gang: the toggles that say which processes do its cases together; empty for itself alone.
    """

    framework: str
    variables: tuple[tuple[str, str], ...] = ()
    interpreter: str = sys.executable
    gang: tuple[tuple[str, str], ...] = ()


class WorkerProcess:
    """A process that has one framework, and runs cases of it.

    Args:
        spec: what it loads, with which environment variables, in which interpreter.
        threads: the threads that it computes with, set before the import.
        inherit_output: whether it writes to the session's own output, as with ``-s``.
        tick: called while it is waited for.

    Attributes:
        has_begun: whether its session of pytest waits for cases.

    Raises:
        FrameworkBroken: the system starts no such process.
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
        self.has_begun = False
        self._tick = tick
        self._doing = f"starting {spec.framework}"
        try:
            with ExitStack() as unstarted:
                self._output = unstarted.enter_context(Output())
                own_end, other_end = map(unstarted.enter_context, socket.socketpair())
                errors = self._output.file
                output = None if inherit_output else errors
                self._process = _started(spec, threads, other_end, output, errors)
                unstarted.pop_all()
        except OSError as error:
            raise _not_started(spec.interpreter, error) from error
        other_end.close()
        self._channel = Channel(own_end)

    def send(self, kind: str, *values: Any) -> None:
        """Send a message to the worker.

        Args:
            kind: of the message; see :mod:`fwbench.plugin.worker`.
            values: that JSON can hold.

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
            overdue: what it failed to do in time, for the error message.

        Raises:
            WorkerDied: the worker ended, said nothing in time, or sent what is not a message.
        """
        self._tick(self._doing)
        while not self._readable(deadline):
            self._tick(self._doing)
            if self._process.poll() is not None and not self._channel.readable():
                raise self._died()
            if time.monotonic() >= deadline:
                self._ask_for_traceback()
                raise self._ended(f"{overdue} and was ended")
        try:
            # A message that has begun has its other bytes, too, unless these are a test's own.
            return self._channel.receive(max(_PART_S, deadline - time.monotonic()))
        except TimeoutError:
            raise self._ended(f"{overdue} and was ended") from None
        except IsolationError as error:
            raise self._ended(
                f"{error}; it was ended. Does the test write to a descriptor that is not its own?"
            ) from None
        except (EOFError, OSError):
            raise self._died() from None

    def _readable(self, deadline: float) -> bool:
        return self._channel.readable(min(_POLL_S, max(0.0, deadline - time.monotonic())))

    def load(self) -> None:
        """Wait until the framework is imported.

        Raises:
            FrameworkUnavailable: it cannot be imported, or its environment has another version of
                fwbench, which might measure differently.
            WorkerDied: the worker died meanwhile.
        """
        kind, *arguments = self.receive(
            time.monotonic() + START_TIMEOUT_S,
            f"did not import it within {START_TIMEOUT_S:g} s",
        )
        if kind == "unavailable":
            reason, remedy, missing = arguments
            raise (FrameworkMissing if missing else FrameworkUnavailable)(reason, remedy)
        if arguments != [__version__]:
            raise FrameworkBroken(
                f"its environment has fwbench {' '.join(arguments)}, and this is {__version__}",
                "recreate it: fwbench env remove, then fwbench env add",
            )

    def begin(self, session: dict[str, Any]) -> None:
        """Have the worker begin its session; it does while others do.

        Args:
            session: what it begins with; see :mod:`fwbench.plugin.handover`.

        Raises:
            WorkerDied: it ended instead.
        """
        self.send("session", session)

    def until_begun(self) -> Iterator[list[Any]]:
        """Yield what the worker says before its session waits for cases.

        Raises:
            WorkerDied: it ended instead, or did not begin in time.
        """
        until_s = time.monotonic() + START_TIMEOUT_S
        overdue = f"did not begin its session within {START_TIMEOUT_S:g} s"
        while (message := self.receive(until_s, overdue))[0] != "begun":
            yield message
        self.has_begun = True

    def mark(self) -> None:
        """Begin a new case: the tail of the output begins here."""
        self._doing = ""
        self._output.mark()

    def tail(self) -> str:
        """The last lines that the worker wrote since the mark, ready to append to a message."""
        return self._output.tail()

    def dismiss(self) -> None:
        """Let the worker tear down what it has set up, and end, while others do."""
        self._channel.close()

    def stop(self) -> None:
        """Let the worker tear down what it has set up, and end it."""
        self.dismiss()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_TIMEOUT_S)
        finally:
            self.kill()

    def is_alive(self) -> bool:
        """Whether the process is still running."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the worker and whatever it has started.

        After a GPU has hung, a process stays in its driver and does not die even of SIGKILL: it is
        left behind then.
        """
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_TIMEOUT_S)
        self._channel.close()
        self._output.close()

    def _ask_for_traceback(self) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_TRACEBACK_S)

    def _died(self) -> WorkerDied:
        # The connection closes a moment before the process has ended.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_TIMEOUT_S)
        return self._ended(ending(self._process.poll()))

    def _ended(self, how: str) -> WorkerDied:
        tail = self.tail()
        self.kill()
        if self.is_alive():
            how += (
                f", and is still there {_KILL_TIMEOUT_S:g} s after SIGKILL, with its memory: a "
                "driver holds it, as after a GPU has hung (see dmesg)"
            )
        return WorkerDied(f"the worker of {self.framework} {how}", tail)


def _started(
    spec: WorkerSpec, threads: int, connection: socket.socket, output: Any, errors: Any
) -> subprocess.Popen[bytes]:
    measures_numpy = framework_of(spec.framework) == "numpy"
    defaults = _DEFAULTS if measures_numpy else {**_DEFAULTS, **reference_variables()}
    return subprocess.Popen(
        [
            # -P: a torch.py in the current folder is not PyTorch.
            *(spec.interpreter, "-P", "-c", WORKER_MAIN),
            *(str(connection.fileno()), spec.framework, str(threads)),
        ],
        env={**defaults, **os.environ, **thread_variables(threads), **dict(spec.variables)},
        pass_fds=[connection.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        # Ctrl-C reaches the parent alone, which then ends the whole group.
        start_new_session=True,
    )


def _not_started(interpreter: str, error: OSError) -> FrameworkBroken:
    if error.filename == interpreter:
        return FrameworkBroken(f"its interpreter does not run: {error}")
    scarce = _SHORT_OF.get(error.errno or 0)
    remedy = f"allow more {scarce}" if scarce else ""
    return FrameworkBroken(f"its process cannot be started: {error}", remedy)
