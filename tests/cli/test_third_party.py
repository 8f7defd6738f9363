"""The smallest suite of another project, from the index: no false alarm, and 20 % are found."""

import subprocess
import sys
from pathlib import Path

import pytest

_HARNESS = Path(__file__).parents[2] / "benchmarks" / "harness" / "third_party.py"


@pytest.mark.nightly
def test_a_suite_of_another_project() -> None:
    """Its status is 0 only if equal sides are not called different, and slower ones are."""
    command = [sys.executable, str(_HARNESS), "--only", "tblib", "--budget", "60s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    equal, slower = done.stdout.splitlines()[1:]
    assert "1 unchanged" in equal or "1 inconclusive" in equal
    assert "1 regressed" in slower
