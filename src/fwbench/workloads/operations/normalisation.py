"""Normalisation."""

from __future__ import annotations

from fwbench.workloads.operation import family

NORMALISATION = family("normalisation", ())
