"""Calls that returned long before their work was done."""

from __future__ import annotations

from fwbench.records.facts import CaseFacts

#: From this ratio of completion to dispatch on.
_APART = 2.0


def early(facts: CaseFacts) -> tuple[float, float] | None:
    """Seconds until calls returned, and until their work was done.

    Returns:
        None where a call took more than half the time that its work took, or this is not known.
    """
    done_s, returned_s = facts.completion_s, facts.dispatch_s
    if not done_s or not returned_s or done_s / returned_s <= _APART:
        return None
    return returned_s, done_s
