"""A child process whose output is kept for the message that says how it ended."""

import faulthandler
import functools
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing import util
from multiprocessing.connection import wait
from pathlib import Path

import psutil

from fwbench.processes import addresses

#: How much of the output a message shows at most.
_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 30

_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)

#: How long a process may take to die of SIGKILL.
KILL_TIMEOUT_S = 10.0

#: Frames of pytest and of the worker at the foot of every traceback, and what follows them.
_HARNESS_FRAME = re.compile(
    r"""\s*File\ "
        (.*[/\\](_pytest|pluggy|pytest_benchmark|fwbench[/\\](plugin|processes|gangs))[/\\]|<string>)
    |Extension\ modules:""",
    re.VERBOSE,
)


class Process:
    """A child process; a file that no other process sees has its standard error.

    Args:
        given: the text of its standard input; None for none.
        inherits_output: whether its standard output is this process' own, instead of that file.
        own_session: whether it leads a session, so that Ctrl-C does not reach it, and all that it
            has started is killed with it.

    Raises:
        OSError: the system does not start it.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        connection: socket.socket | None = None,
        given: str | None = None,
        inherits_output: bool = False,
        own_session: bool = False,
    ) -> None:
        self._own_session = own_session
        self._mark = 0
        with ExitStack() as unstarted:
            self._output = unstarted.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                command,
                env=variables,
                pass_fds=() if connection is None else (connection.fileno(),),
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=None if inherits_output else self._output,
                stderr=self._output,
                start_new_session=own_session,
            )
            unstarted.pop_all()
        if self._process.stdin is not None and given is not None:
            with suppress(OSError), self._process.stdin as pipe:  # it has ended: see `ending`
                pipe.write(given.encode())

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process is still running."""
        return self._process.poll() is None

    def ending(self, timeout_s: float = 0.0) -> str | None:
        """The way it ended, as a clause; None if it still runs after ``timeout_s``."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return ending(status)

    def is_stopped(self) -> bool:
        """Return whether a signal or a debugger has stopped it."""
        with suppress(psutil.Error):
            return psutil.Process(self.pid).status() in _STOPPED
        return False

    def mark(self) -> None:
        """Let :meth:`tail` begin here."""
        self._mark = os.fstat(self._output.fileno()).st_size

    def tail(self) -> str:
        """The last lines that it wrote since the mark, ready to append to a message."""
        # Not by seeking: the child writes at the offset that it shares with this file.
        descriptor = self._output.fileno()
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

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self._process.terminate()

    def ask_for_traceback(self) -> None:
        """Have it write a traceback; :func:`fwbench.processes.process.initialize` prepares that."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """End it, with its session if it leads one, and discard its output.

        After a GPU has hung, a process stays in its driver and does not die even of SIGKILL: it is
        left behind then.
        """
        with suppress(ProcessLookupError, PermissionError):
            if self._own_session:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_TIMEOUT_S)
        self._output.close()


def ending(status: int) -> str:
    """The way a process with this exit status ended, negative for a signal, as a clause."""
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    if name == "SIGKILL":
        return "was killed by SIGKILL (often the kernel's, for lack of memory)"
    return f"was ended by {name}"


#: Has the kernel end a process with its parent, which may have died already: PR_SET_PDEATHSIG is
#: 1. Text, because a child runs it before it imports anything of fwbench, which takes seconds.
_TIED = """
import ctypes, os, signal, sys
sys.platform == "linux" and ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.getppid() == {parent} or os._exit(1)
"""


def python(main: str) -> list[str]:
    """The arguments of an interpreter for a child of this process, which ends with it."""
    # -P: a torch.py in the current folder is not PyTorch.
    return ["-P", "-c", _TIED.format(parent=os.getpid()) + main]


def tie(parent: int) -> None:
    """Have this process end with its parent, or now if that has died."""
    exec(_TIED.format(parent=parent))  # noqa: S102 (the constant above)


def initialize() -> None:
    """Settle this process, and have it write a traceback when its parent asks for one."""
    addresses.settle()
    if sys.platform == "linux":
        # The kernel's out-of-memory killer takes a worker before it takes the session.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)


def executor() -> ProcessPoolExecutor:
    """One child process that calls functions, one after another; it ends with this process.

    It is started with the first call, and imports what this process must not.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_initialize_executor)


def _initialize_executor() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None  # noqa: S101, PT018 (it was spawned)
    tie(parent.pid)
    initialize()
    if sys.platform != "linux":
        threading.Thread(target=_exit_after, args=[parent.sentinel], daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@functools.cache
def share_temporary_folder() -> None:
    """Give all data loaders of this process one temporary folder, removed when the last one ends.

    ``multiprocessing`` gives each process that passes arrays on a folder of its own for a socket,
    which the process removes at its end. A process that is killed never does, nor do MXNet's
    loaders, which their pool terminates. Processes that are forked later use the existing folder.
    """
    folder = util.get_temp_dir()
    # The shell's input ends when no process has the other end any more, however they ended: this
    # one never closes it, and what it forks inherits it.
    read_end, _ = os.pipe()
    os.posix_spawnp(
        "sh",
        ["sh", "-c", 'cat; rm -rf -- "$0"', folder],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, read_end, 0)],
        setsid=True,
    )
    os.close(read_end)
