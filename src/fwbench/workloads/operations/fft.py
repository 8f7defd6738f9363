"""Fourier transforms."""

from __future__ import annotations

from fwbench.workloads.operation import family

FFT = family("fft", ())
