"""TensorFlow: Fourier transforms."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "fft": "signal.fft",
    "rfft": "signal.rfft",
    "fft2": "signal.fft2d",
}

GAPS: tuple[Gap, ...] = ()
