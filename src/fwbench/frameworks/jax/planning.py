"""What XLA has planned for a compiled function: its buffers, as far as they are its own."""

from __future__ import annotations

from typing import Any


def planned_bytes(function: Any, *arguments: Any) -> int:
    """Temporary buffers and results, those apart that take the place of arguments.

    Args:
        function: what ``jax.jit`` has returned; it is compiled once more.
        arguments: of a call, which is not made.
    """
    plan = function.lower(*arguments).compile().memory_analysis()
    own_bytes = plan.output_size_in_bytes - plan.alias_size_in_bytes
    return int(plan.temp_size_in_bytes + own_bytes)
