"""What a planner reserves for the results of bound work, said by the work itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fwbench.frameworks.contract import BoundCall

#: The attribute by which bound work says so.
_PLAN = "planned_bytes"

#: Tells how much memory a planner reserves for results; None where there is no planner.
Plan = Callable[[], int | None]


def with_plan(run: BoundCall, plan: Plan) -> BoundCall:
    """Bound work that can say what memory was planned for it, for :func:`planned_bytes`.

    Args:
        run: is called as before, and costs as much.
        plan: is called once, after all calls.
    """
    vars(run)[_PLAN] = plan
    return run


def planned_bytes(run: BoundCall) -> int | None:
    """What a planner reserves for the results of bound work; None where there is no planner."""
    plan: Plan | None = getattr(run, _PLAN, None)
    return None if plan is None else plan()
