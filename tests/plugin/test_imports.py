"""A session imports what it uses: a machine with a GPU may lack the rest and have no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: What reports, environments, completion, GPUs, TensorFlow's rounds and NumPy's threads need.
_ABSENT = (
    *("cairosvg", "greenlet", "jinja2", "platformdirs", "pygal", "pygaljs", "pynvml", "ruptures"),
    *("shtab", "threadpoolctl"),
)

#: Every interpreter imports it as it starts, workers too.
_SITECUSTOMIZE = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {_ABSENT!r}:
            raise ModuleNotFoundError(f"no {{name}} here", name=name)

sys.meta_path.insert(0, Absent())
"""

_TEST = """
import pytest
from fwbench.workloads import relu

@pytest.mark.fwbench(relu, sizes=(8,))
def test_it(case):
    case.measure()
"""


def test_a_session_needs_little(tmp_path: Path) -> None:
    """PyTorch is measured, in a worker, where nothing else is installed than what a case needs."""
    (tmp_path / "sitecustomize.py").write_text(_SITECUSTOMIZE, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(_TEST, encoding="utf-8")
    options = ("--fw=torch", "--benchmark-max-time=0.01", "--fw-warmup=0", "--fw-threads=1")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "relu" in done.stdout
    assert "1 passed" in done.stdout
