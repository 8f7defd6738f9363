"""Runs a program, and ends it with all that it has started when its caller has died.

This is a script for an interpreter of its own (``python -I -S guard.py DESCRIPTOR PROGRAM ...``)
that leads a session: the program and what it starts are of one process group, but for daemons,
which leave it (setsid) and stay: a test may start a cluster on purpose. The descriptor is a socket.
When the program has ended, its exit status is written to it, or ``!`` and the number of the error
that kept it from starting; when the other end closes, whether or not its process had the time to
say so, the group is killed. On Linux the program ends with this process, too, and has the addresses
that its environment gives: see :mod:`fwbench.processes.addresses`.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

#: The environment variable of a program with given addresses: the limit of its stack, the size of
#: those of its threads, both in bytes, and padding.
ADDRESSES_VARIABLE = "FWBENCH_ADDRESSES"

#: What asks personality(2) for the one that there is, and the flag of processes whose addresses the
#: system does not draw.
PERSONALITY, NOT_RANDOM = 0xFFFFFFFF, 0x0040000

_PR_SET_PDEATHSIG = 1


def _pass_over(_: int, __: FrameType | None) -> None:
    """Survive what is sent to the whole group; unlike SIG_IGN, no program inherits this."""


def _prepare() -> None:
    """Tie the program, in its process, to this one, and give it its addresses."""
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    limit, *_ = os.environ.get(ADDRESSES_VARIABLE, "").split(",")
    if limit:
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (int(limit), hard))
        libc.personality(libc.personality(PERSONALITY) | NOT_RANDOM)


def _kill_group() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _wait_for_end(asker: socket.socket) -> None:
    """Kill the group when the other end of the socket is closed; nothing is ever sent there."""
    with suppress(OSError):
        asker.recv(1)
    _kill_group()


def main() -> None:
    """Entry point; arguments of the process: the socket's descriptor, and the command to run."""
    assert os.getpgrp() == os.getpid(), "to be started in a session of its own"  # noqa: S101
    asker = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, _pass_over)
    try:
        # Safe: there are no other threads yet.
        program = subprocess.Popen(sys.argv[2:], preexec_fn=_prepare)  # noqa: PLW1509
    except OSError as error:
        asker.sendall(f"!{error.errno}".encode())
        return
    threading.Thread(target=_wait_for_end, args=[asker], daemon=True).start()
    asker.sendall(str(program.wait()).encode())
    _kill_group()


if __name__ == "__main__":
    main()
