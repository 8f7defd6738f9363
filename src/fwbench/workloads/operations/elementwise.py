"""Elementwise arithmetic."""

from __future__ import annotations

from fwbench.workloads.operation import family

ELEMENTWISE = family("elementwise", ())
