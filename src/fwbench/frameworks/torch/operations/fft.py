"""PyTorch: Fourier transforms."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "fft": "fft.fft",
    "rfft": "fft.rfft",
    "fft2": "fft.fft2",
}

GAPS: tuple[Gap, ...] = ()
