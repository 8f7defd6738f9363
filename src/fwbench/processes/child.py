"""The inside of child processes: they end with their parent, and leave no files."""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import util
from multiprocessing.connection import wait
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def initialize() -> None:
    """Have this process end with its parent, and write a traceback when the parent asks for one."""
    if sys.platform == "linux":
        # The kernel ends this process even if the parent dies without closing anything.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
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
    initialize()
    parent = multiprocessing.parent_process()
    if sys.platform != "linux" and parent is not None:
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
