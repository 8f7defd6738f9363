"""A row in turns: contestants that hold different cases of the same work."""

from contextlib import AbstractContextManager

import numpy as np

from fwbench.turns.contest import CaseVisits, Effort

#: With the operands of up to eight cases a cache holds nothing of any.
_LEAD_IN_S = 3e-3

#: Rounds of turns of a contest at least, and so many before it is asked how well ratios are known,
#: again after each few more.
_AT_LEAST, _ASKED_FROM, _EACH = 5, 12, 4

#: Ratios to the fastest are known well enough where the middle half of them lies within this share;
#: of contestants that are so many times as slow they need not be.
_WITHIN, _FAR = 0.01, 2.0


def effort(max_time_s: float, watch: AbstractContextManager[object]) -> Effort:
    """The effort of a row: until ratios are known, or for so long.

    Args:
        max_time_s: the time of each contestant's visits after which they end.
        watch: entered while visits are made.
    """
    return Effort(
        lambda _, seen: (
            len(seen.visits_s) >= _AT_LEAST and (seen.used_s >= max_time_s or _are_known(seen))
        ),
        same_case=False,
        lead_in_s=_LEAD_IN_S,
        at_least=_AT_LEAST,
        watch=watch,
    )


def _are_known(seen: CaseVisits) -> bool:
    """True if the ratios of those that are nearly as fast as the fastest are known."""
    number = len(seen.visits_s)
    if number < _ASKED_FROM or number % _EACH:
        return False
    logs = np.log(seen.medians_s())
    ratios = logs - logs[np.argmin(np.median(logs, axis=1))]
    near = ratios[np.median(ratios, axis=1) < np.log(_FAR)]
    low, high = np.quantile(near, (0.25, 0.75), axis=1)
    return bool(np.all(high - low < _WITHIN))
