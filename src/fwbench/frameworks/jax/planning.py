"""The memory that XLA has planned for a compiled function: its own buffers."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.probes import with_plan


def planned(run: BoundCall, function: Any, *arguments: Any) -> BoundCall:
    """Bound work with what XLA has planned for it, if it is compiled as a whole.

    Args:
        arguments: of each call.
    """
    if not hasattr(function, "lower"):
        return run
    return with_plan(run, partial(planned_bytes, function, *arguments))


def planned_bytes(function: Any, *arguments: Any) -> int:
    """Temporary buffers and results, those apart that take the place of arguments.

    Args:
        function: what ``jax.jit`` has returned; it is compiled once more.
        arguments: of a call, which is not made.
    """
    plan = function.lower(*arguments).compile().memory_analysis()
    own_bytes = plan.output_size_in_bytes - plan.alias_size_in_bytes
    return int(plan.temp_size_in_bytes + own_bytes)
