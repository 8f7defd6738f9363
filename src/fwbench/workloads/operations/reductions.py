"""Reductions."""

from __future__ import annotations

from fwbench.workloads.operation import family

REDUCTIONS = family("reductions", ())
