"""The temporary files of loaders, which nobody removes who was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

_KILLED = """
import os, signal
from multiprocessing import get_context, util
from fwbench.processes.child import share_temporary_folder

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
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED], env=variables, capture_output=True, text=True, check=False
    )
    assert killed.returncode < 0, killed.stderr
    folders = killed.stdout.splitlines()
    assert len(folders) == 2
    assert len({*folders}) == 1
    deadline = time.monotonic() + 10.0
    while [*tmp_path.iterdir()]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
