"""Indexing."""

from __future__ import annotations

from fwbench.workloads.operation import family

INDEXING = family("indexing", ())
