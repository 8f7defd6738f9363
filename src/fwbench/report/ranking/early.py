"""Calls that returned long before their work was done."""

from __future__ import annotations

from fwbench.records.facts import CaseFacts

#: From this ratio of completion to dispatch on.
_APART = 2.0

#: The shortest time that a clock tells: a dispatch of 0 took less.
_LEAST_S = 1e-9


def early(facts: CaseFacts) -> tuple[float, float] | None:
    """Seconds until calls returned, above 0, and until their work was done.

    Returns:
        None where a call took at least half the time that its work took, or this is not known.
    """
    done_s, returned_s = facts.completion_s, facts.dispatch_s
    if done_s is None or returned_s is None or done_s <= _APART * returned_s:
        return None
    return max(returned_s, _LEAST_S), done_s
