"""Attention."""

from __future__ import annotations

from fwbench.workloads.operation import family

ATTENTION = family("attention", ())
