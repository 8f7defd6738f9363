"""Child processes: one calls functions, loaders leave no files, and all end with their parents."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fwbench.processes import process
from support import programs

_PARENT = """
import os, time
from fwbench.processes import process
if __name__ == "__main__":
    print(process.executor().submit(os.getpid).result(), flush=True)
    time.sleep(60)
"""


def test_one_process_answers_every_call() -> None:
    """So what it imports is imported once; it is not this process."""
    with process.executor() as executor:
        first = executor.submit(os.getpid).result()
        assert executor.submit(os.getpid).result() == first != os.getpid()
    assert not psutil.pid_exists(first)


_STARTS = """
import subprocess, sys, time
from fwbench.processes import process
child = subprocess.Popen([sys.executable, *process.python("import time; time.sleep(60)")])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("program", "delay_s", "within_s"),
    [(_PARENT, 0.0, 30.0), (_STARTS, 0.0, 10.0), (_STARTS, 0.2, 10.0)],
    ids=["while it waits for calls", "before it imports", "while it imports"],
)
def test_a_child_ends_with_a_parent_that_is_killed(
    program: str, delay_s: float, within_s: float
) -> None:
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        time.sleep(delay_s)
        parent.kill()
    assert psutil.wait_procs([child], timeout=within_s)[1] == []


def test_a_child_whose_parent_has_died_before_does_nothing() -> None:
    *options, main = process.python("print('imported')")
    orphaned = main.replace(f"== {os.getpid()}", "== 0")
    ended = programs.run(*options, orphaned)
    assert (ended.returncode, ended.stdout) == (1, "")


_KILLED = """
import os, signal
from multiprocessing import get_context, util
from fwbench.processes.process import share_temporary_folder

def show():
    print(util.get_temp_dir(), flush=True)

share_temporary_folder()
share_temporary_folder()
show()
loader = get_context("fork").Process(target=show)
loader.start()
loader.join()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_one_folder_that_goes_with_the_last_process(tmp_path: Path) -> None:
    """A forked process uses its parent's, which is gone once both have ended, in whatever way."""
    killed = programs.run("-c", _KILLED, variables={"TMPDIR": str(tmp_path)})
    assert killed.returncode < 0, killed.stderr
    folders = killed.stdout.splitlines()
    assert len(folders) == 2
    assert len({*folders}) == 1
    deadline = time.monotonic() + 10.0
    while [*tmp_path.iterdir()]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
