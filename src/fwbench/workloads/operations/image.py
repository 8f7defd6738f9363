"""Images."""

from __future__ import annotations

from fwbench.workloads.operation import family

IMAGE = family("image", ())
