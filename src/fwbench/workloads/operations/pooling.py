"""Pooling."""

from __future__ import annotations

from fwbench.workloads.operation import family

POOLING = family("pooling", ())
