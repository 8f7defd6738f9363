"""Updates of optimisers."""

from __future__ import annotations

from fwbench.workloads.operation import family

OPTIMISERS = family("optimisers", ())
