"""Random numbers."""

from __future__ import annotations

from fwbench.workloads.operation import family

RANDOM = family("random", ())
