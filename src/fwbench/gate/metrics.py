"""What a launch is judged by: two statistics of its rounds, and what a user feels besides."""

from __future__ import annotations

import statistics as _statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fwbench.records.facts import Launch

#: What a clock, a compiler without work, and an allocator differ by.
_DISPATCH_S = 1e-6
_COMPILE_S = 1e-3
_MEMORY_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Metric:
    """One figure of a launch that has a verdict of its own.

    Attributes:
        name: in tables and figures.
        read: gives the figure of a launch; None where it was not measured.
        weight: its part of the level.
        threshold: the smallest change that is worth a verdict, as a share; None for the
            comparison's own, which is that of times.
        least: what is added to both sides, so that ratios of next to nothing are near 1.
    """

    name: str
    read: Callable[[Launch], float | None]
    weight: float
    threshold: float | None = None
    least: float = 0.0

    def raised(self, values: Sequence[float]) -> list[float]:
        """Figures of launches as they are compared."""
        return [value + self.least for value in values]

    def looks_changed(self, ratio: float, factor: float) -> bool:
        """Whether a ratio is beyond a factor; of what is no time, only growth keeps a case open.

        Args:
            ratio: the contender's figure over the base's.
            factor: above 1.
        """
        return ratio > factor or (self.is_time and 1 / ratio > factor)

    @property
    def option(self) -> str:
        """Its name where users give thresholds."""
        return self.name.replace(" ", "-")

    @property
    def is_time(self) -> bool:
        """Whether it stands for the time of a call, of which ``unchanged`` takes evidence."""
        return self.threshold is None


def _memory(launch: Launch) -> float | None:
    """The bytes that a case held beyond what its process held before."""
    peak, before = launch.peak_host_memory_bytes, launch.host_memory_before_bytes
    if peak is None or before is None:
        return None
    return float(max(0, peak - before))


MINIMUM = "minimum"
MEDIAN = "median"
MEMORY = "memory"

#: In hertz: what makes cycles of times on a GPU. It has no verdict of its own.
CLOCK = "clock"

#: All of them. The first two have most of the level; the others look for what has grown by far.
METRICS = (
    Metric(MINIMUM, lambda launch: launch.min_s, 0.4),
    Metric(MEDIAN, lambda launch: launch.median_s, 0.4),
    Metric("dispatch", lambda launch: launch.dispatch_s, 0.05, 0.5, _DISPATCH_S),
    Metric("first call", lambda launch: launch.first_call_in_process_s, 0.05, 1.0),
    Metric("compilation", lambda launch: launch.compile_s, 0.05, 1.0, _COMPILE_S),
    Metric(MEMORY, _memory, 0.05, 0.5, _MEMORY_BYTES),
)

#: The thresholds of those that have their own, by name.
THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {metric.name: metric.threshold for metric in METRICS if metric.threshold is not None}
)


def figures(launch: Launch, statistic: str | None) -> dict[str, float]:
    """What a launch is judged by: values by the metrics' names, and the clock of its GPU.

    Args:
        launch: of a case; those of older files have their rounds, or one of the two statistics.
        statistic: the one that stands for a launch of this case.
    """
    values = {metric.name: metric.read(launch) for metric in METRICS}
    values[CLOCK] = launch.sm_clock_hz
    if launch.rounds_s and launch.min_s is None:
        values[MINIMUM] = min(launch.rounds_s)
        values[MEDIAN] = _statistics.median(launch.rounds_s)
    if values[MINIMUM] is None and values[MEDIAN] is None:
        values[MEDIAN if statistic == "median" else MINIMUM] = launch.value_s
    return {name: value for name, value in values.items() if value is not None}
