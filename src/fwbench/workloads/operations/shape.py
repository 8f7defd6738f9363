"""Shapes and orders of elements."""

from __future__ import annotations

from fwbench.workloads.operation import family

SHAPE = family("shape", ())
