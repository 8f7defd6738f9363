"""A child process calls functions one after another, and ends with its parent."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from fwbench.processes import child

_PARENT = """
import os, time
from fwbench.processes import child
if __name__ == "__main__":
    print(child.executor().submit(os.getpid).result(), flush=True)
    time.sleep(60)
"""


def test_one_process_answers_every_call() -> None:
    """So what it imports is imported once; it is not this process."""
    with child.executor() as executor:
        first = executor.submit(os.getpid).result()
        assert executor.submit(os.getpid).result() == first != os.getpid()
    assert not psutil.pid_exists(first)


def test_it_ends_with_a_parent_that_is_killed() -> None:
    """Nothing is left of it."""
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        process = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    assert psutil.wait_procs([process], timeout=30.0)[1] == []
