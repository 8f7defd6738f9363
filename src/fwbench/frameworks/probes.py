"""Probes: facts of a case that a process of its own finds, in addition to its times.

A probe that needs something set before its framework is imported is known to the framework's file
by this environment variable.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fwbench.frameworks.contract import BoundCall

PROFILE = "profile"
MEMORY = "memory"
FORWARD_MEMORY = "forward-memory"

#: Names the probe for which a worker was started. Others that measure times have it only in a
#: session for profiles, whose times nobody reads.
VARIABLE = "FWBENCH_PROBE"

#: A session for profiles has it: the moment, by the monotonic clock, after which a worker begins no
#: probe but its first.
UNTIL_VARIABLE = "FWBENCH_PROBES_UNTIL"


def requested() -> str:
    """The probe for which this process was started; empty if it measures times."""
    return os.environ.get(VARIABLE, "")


def is_for_profiles() -> bool:
    """True in a session for profiles: each worker profiles every case that it has timed."""
    return requested() == PROFILE and UNTIL_VARIABLE in os.environ


#: The attribute by which bound work says so.
_PLAN = "planned_bytes"

#: Bytes that a planner reserves for results; None where there is no planner.
Plan = Callable[[], int | None]


def with_plan(run: BoundCall, plan: Plan) -> BoundCall:
    """Bound work that can say what memory was planned for it, for :func:`planned_bytes`."""
    vars(run)[_PLAN] = plan
    return run


def planned_bytes(run: BoundCall) -> int | None:
    """Bytes that a planner reserves for the results of bound work; None without a planner."""
    plan: Plan | None = getattr(run, _PLAN, None)
    return None if plan is None else plan()
