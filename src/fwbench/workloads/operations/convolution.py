"""Convolution."""

from __future__ import annotations

from fwbench.workloads.operation import family

CONVOLUTION = family("convolution", ())
