"""Recurrent layers."""

from __future__ import annotations

from fwbench.workloads.operation import family

RECURRENT = family("recurrent", ())
