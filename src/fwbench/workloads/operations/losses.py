"""Softmax and losses."""

from __future__ import annotations

from fwbench.workloads.operation import family

LOSSES = family("losses", ())
