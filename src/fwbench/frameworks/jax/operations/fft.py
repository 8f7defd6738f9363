"""JAX: Fourier transforms."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "fft": "numpy.fft.fft",
    "rfft": "numpy.fft.rfft",
    "fft2": "numpy.fft.fft2",
}

GAPS: tuple[Gap, ...] = ()
