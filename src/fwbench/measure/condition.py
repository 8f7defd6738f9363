"""Condition of the rounds of a case: clean, drifting or contended, and whether threads spun.

Every threshold is here; docs/figures.md says which measurements they come from.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Protocol

CLEAN, DRIFTING, CONTENDED = "clean", "drifting", "contended"

#: From the best to the worst.
CONDITIONS = (CLEAN, DRIFTING, CONTENDED)

_FIFTHS = 5

#: A drift counts from this size on, as a share.
_DRIFT_AT_LEAST = 0.1

#: Blocks of rounds that the trend test compares, each by its median: one in each fifth and more.
_BLOCKS = 25

#: Standard deviations of Kendall's S that chance exceeds in 1 % of cases, in either direction.
_TREND_AT_LEAST = 2.576

#: Other processes that keep fewer CPUs busy do not make a case contended.
_OTHERS_AT_MOST_CPUS = 0.25

#: Otherwise any of these shows that they took part of the time: preemptions in a larger share of
#: the rounds, a median round that is this many times the fastest, threads that waited for more
#: processors, or fewer processors idle.
_PREEMPTED_AT_MOST = 0.25
_SLOWED_FROM = 1.3
_QUEUED_AT_MOST_CPUS = 0.1
_IDLE_AT_LEAST_CPUS = 0.1

#: Another guest of the machine did, where CPUs ran at full speed in a smaller share of the rounds.
_FULL_SPEED_AT_LEAST = 0.5

#: Threads spin where the median round is this many times the fastest, ...
_SPINNING_SLOWED_FROM = 3.0
#: ... and a call takes this many times the processor time that the fastest round can have had.
_SPINNING_CPU_FROM = 2.0


class Evidence(Protocol):
    """Evidence that other processes took part of the time; None where it is not known."""

    @property
    def preempted(self) -> float | None:
        """Share of the rounds in which the process lost a processor."""

    @property
    def others_cpus(self) -> float | None:
        """Processors that other processes kept busy."""

    @property
    def queued_cpus(self) -> float | None:
        """Processors for which threads of the case waited."""

    @property
    def idle_cpus(self) -> float | None:
        """Processors that were idle."""

    @property
    def full_speed(self) -> float | None:
        """Share of the rounds in which the CPUs ran at full speed."""

    @property
    def others_on_gpu(self) -> int | None:
        """Processes of others on its GPU; they may be idle."""


def of_rounds(rounds_s: Sequence[float], seen: Evidence) -> str:
    """The condition of a case of one process, by each round's seconds of a call, in order."""
    if is_contended(seen, slowdown(rounds_s)):
        return CONTENDED
    return DRIFTING if is_drifting(rounds_s) else CLEAN


def of_launches(conditions: Sequence[str]) -> str:
    """The condition of a case that was measured in several processes: that of the middle launch.

    So a case is contended if half of its launches were: fewer do not move the median launch.
    """
    return sorted(conditions, key=CONDITIONS.index)[len(conditions) // 2]


def drift(rounds_s: Sequence[float]) -> float | None:
    """Extra time of the last fifth of the rounds over the first, as a share.

    Args:
        rounds_s: seconds of a call in each round, in the order of time.

    Returns:
        The median of the last fifth over that of the first, minus 1; None for a single round.
    """
    number = len(rounds_s)
    if number < 2:  # noqa: PLR2004 (nothing to compare)
        return None
    fifth = max(1, number // _FIFTHS)
    return statistics.median(rounds_s[-fifth:]) / statistics.median(rounds_s[:fifth]) - 1


def is_drifting(rounds_s: Sequence[float]) -> bool:
    """True if the rounds became slower or faster by more than noise explains.

    The drift must be large, and the medians of up to 25 consecutive blocks must have a trend by the
    Mann-Kendall test (Mann, Econometrica 13, 1945; Kendall, Rank Correlation Methods, 1975) at 1 %,
    which fewer than six rounds cannot reach.
    """
    share = drift(rounds_s)
    large = share is not None and max(share, 1 / (1 + share) - 1) >= _DRIFT_AT_LEAST
    return large and _trend(_block_medians(rounds_s)) >= _TREND_AT_LEAST


def _block_medians(rounds_s: Sequence[float]) -> list[float]:
    blocks = min(_BLOCKS, len(rounds_s))
    bounds = [len(rounds_s) * block // blocks for block in range(blocks + 1)]
    return [statistics.median(rounds_s[begin:end]) for begin, end in itertools.pairwise(bounds)]


def _trend(values: Sequence[float]) -> float:
    """Kendall's S in units of its standard deviation without a trend, corrected for continuity."""
    number = len(values)
    signs = sum(
        (later > earlier) - (later < earlier)
        for place, earlier in enumerate(values)
        for later in values[place + 1 :]
    )
    deviation = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    return max(0.0, (abs(signs) - 1) / deviation)


def is_contended(seen: Evidence, slowed: float | None = None) -> bool:
    """True if others took processors, or the GPU, that the rounds needed.

    Of other processes it takes both busy ones and rounds that show it, or no processor that was
    left for them. Others alone may have run on idle processors; and on two processors JAX's own
    three threads preempt each other in half of the rounds.

    Args:
        slowed: the median round over the fastest; None where it is not known.
    """
    if is_slow(seen):
        return True
    preempts = (seen.preempted or 0.0) > _PREEMPTED_AT_MOST
    slows = (slowed or 1.0) >= _SLOWED_FROM
    if seen.others_on_gpu and slows:
        return True
    if seen.others_cpus is None:
        # Either alone is seen without others, too: threads of JAX preempt each other, and a tenth
        # of a second of rounds scatters.
        return preempts and (slows or slowed is None)
    queues = (seen.queued_cpus or 0.0) > _QUEUED_AT_MOST_CPUS
    none_idle = seen.idle_cpus is not None and seen.idle_cpus < _IDLE_AT_LEAST_CPUS
    others = seen.others_cpus > _OTHERS_AT_MOST_CPUS
    return others and (preempts or slows or queues or none_idle)


def is_slow(seen: Evidence) -> bool:
    """True if CPUs were slower than at full speed in most of the rounds, whoever slowed them."""
    return seen.full_speed is not None and seen.full_speed < _FULL_SPEED_AT_LEAST


def slowdown(rounds_s: Sequence[float]) -> float:
    """Median round over the fastest round, as a factor."""
    return statistics.median(rounds_s) / min(rounds_s)


def is_spinning(rounds_s: Sequence[float], cpu_s: float, threads: int | None) -> bool:
    """True if threads spent processor time on waiting for each other.

    A call needs at most the time of the fastest round on every thread. Losing a processor makes it
    longer but adds no processor time; a thread that waits actively (OpenMP's default) does.
    """
    if threads is None or threads == 1:
        return False
    if slowdown(rounds_s) < _SPINNING_SLOWED_FROM:
        return False
    return cpu_s >= _SPINNING_CPU_FROM * threads * min(rounds_s)
