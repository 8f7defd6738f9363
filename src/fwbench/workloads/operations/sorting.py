"""Sorting."""

from __future__ import annotations

from fwbench.workloads.operation import family

SORTING = family("sorting", ())
