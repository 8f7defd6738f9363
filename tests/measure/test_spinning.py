"""No thread takes a CPU from what is measured next."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fwbench import machine
from fwbench.measure.warmup import wait_until_idle

_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"


class Spinning:
    """A process whose threads spin for so long."""

    def __init__(self, seconds: float) -> None:
        self.left_s = seconds
        self.used_s = 0.0
        self.waited_s = 0.0

    def used(self) -> float:
        """Processor seconds so far."""
        return self.used_s

    def sleep(self, seconds: float) -> None:
        """Let time pass, in which one thread spins."""
        self.used_s += min(seconds, self.left_s)
        self.left_s = max(0.0, self.left_s - seconds)
        self.waited_s += seconds


@pytest.mark.parametrize(
    ("spins_s", "waits_s"),
    [(0.0, 0.002), (0.0001, 0.002), (0.099, 0.102), (0.1, 0.102), (9.0, 0.3)],
)
def test_spinning_threads_are_waited_for(spins_s: float, waits_s: float) -> None:
    """For as long as they do, and one look more; and not for ever."""
    process = Spinning(spins_s)
    wait_until_idle(process.used, process.sleep)
    assert process.waited_s == pytest.approx(waits_s)


_PRODUCT = """
import time
import numpy as np

matrix = np.ones((512, 512))
matrix @ matrix
before_s = time.process_time()
time.sleep(0.05)
print(time.process_time() - before_s)
"""


def test_products_of_references_leave_no_thread_spinning() -> None:
    """By default OpenBLAS' go on for 0.1 s."""
    variables = {name: value for name, value in os.environ.items() if name != _VARIABLE}
    variables |= machine.thread_variables(2) | machine.reference_variables()
    command = [sys.executable, "-c", _PRODUCT]
    found = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 0.01


@pytest.mark.parametrize("own", ["4", "20"])
def test_what_a_user_has_set_stays(monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    """For NumPy's library, and for those of frameworks."""
    monkeypatch.setenv(_VARIABLE, own)
    assert machine.reference_variables() == {}
    machine.forget_reference_variables()
    assert os.environ[_VARIABLE] == own


def test_frameworks_do_not_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """MXNet has an OpenBLAS of its own, which is measured."""
    monkeypatch.delenv(_VARIABLE, raising=False)
    for name, value in machine.reference_variables().items():
        monkeypatch.setenv(name, value)
    machine.forget_reference_variables()
    assert _VARIABLE not in os.environ
