"""Probes: what a process of its own finds out about a case, in addition to its times.

A probe that needs something set before its framework is imported is known to the framework's file
by this environment variable.
"""

from __future__ import annotations

import os

PROFILE = "profile"
MEMORY = "memory"
FORWARD_MEMORY = "forward-memory"

#: Names the probe for which a worker was started; no other worker has it.
VARIABLE = "FWBENCH_PROBE"


def asked() -> str:
    """The probe for which this process was started; empty if it measures times."""
    return os.environ.get(VARIABLE, "")
