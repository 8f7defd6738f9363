"""MXNet: Fourier transforms."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet has no complex numbers; its contrib.fft is for GPUs alone", operation)
    for operation in ("fft", "rfft", "fft2")
)
