"""Does a call take as long when its inputs have changed? Then the timed ones have done their work.

A result that is right on whatever inputs may still be kept from an earlier call, by a cache that
looks at its inputs. Calls on inputs that have just changed cannot be spared the work, so they take
as long as the work does.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

from fwbench.cases.work import Work
from fwbench.errors import SkippedWork
from fwbench.frameworks.contract import BoundCall
from fwbench.measure.clock import Clock
from fwbench.records import units
from fwbench.records.facts import CaseFacts

#: The fastest call on changed inputs may take this many times the others, and so many seconds more.
_TIMES = 10.0
_SPARE_S = 1e-3

#: How often all is verified again, two calls each time, before a case fails.
_TRIES = 5

#: As long as threads that wait actively do so: a call then finds them asleep.
_PAUSE_S = 0.05


def verify_again(work: Work, last: Any, clock: Clock, rounds_s: Sequence[float]) -> CaseFacts:
    """Verify what was timed, and that calls on changed inputs take no longer than it did.

    Args:
        work: has been timed.
        last: the result of the last call that was.
        clock: times the calls; not the one of the rounds, which keeps them for the record.
        rounds_s: seconds per call of every round; empty where nothing was timed.

    Returns:
        What was found.

    Raises:
        VerificationError: a result is wrong.
        SkippedWork: a call took much longer, each time that its inputs had changed.
    """
    calls = _Calls(clock, statistics.median(rounds_s or [math.inf]))
    for _ in range(_TRIES):
        found = work.verify_again(last, calls)
        if not calls.are_slow:
            return found
    fastest, others = map(units.time, (min(calls.changed_s), calls.others_s))
    raise SkippedWork(
        f"calls on changed inputs took {fastest} at least, and most others {others} at most, so "
        "their results were kept from earlier calls; compute in every call"
    )


class _Calls:
    """Makes calls on changed inputs, and takes their times.

    A single call takes longer than those of a loop, whose threads are awake: on a busy machine
    PyTorch's of three microseconds took 18 to 56 ms. So where the first calls are slow, each of the
    next ones is made twice, each time after a pause: the second time its inputs have not changed,
    and it is fast only if results are kept.

    Args:
        clock: times the calls.
        typical_s: what a call took that was timed.
    """

    def __init__(self, clock: Clock, typical_s: float) -> None:
        self._clock = clock
        self._typical_s = typical_s
        self.changed_s: list[float] = []
        self._unchanged_s: list[float] = []

    @property
    def others_s(self) -> float:
        """What most calls take at most whose inputs have not changed."""
        unchanged_s = sorted(self._unchanged_s) or [0.0]
        return max(self._typical_s, unchanged_s[3 * len(unchanged_s) // 4])

    @property
    def are_slow(self) -> bool:
        """Whether each call on changed inputs took much longer than others."""
        return min(self.changed_s, default=0.0) > _TIMES * self.others_s + _SPARE_S

    def __call__(self, run: BoundCall) -> Any:
        if not self.are_slow:
            return self._timed(run, self.changed_s)
        time.sleep(_PAUSE_S)
        result = self._timed(run, self.changed_s)
        time.sleep(_PAUSE_S)
        self._timed(run, self._unchanged_s)
        return result

    def _timed(self, run: BoundCall, seconds: list[float]) -> Any:
        call_s, result = self._clock.time(run)
        seconds.append(call_s)
        return result
