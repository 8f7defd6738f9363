"""Timer of a case's work, as cases see it; the plugin adapts pytest-benchmark to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from fwbench.measure.gpu_watch import GpuWatch
from fwbench.measure.stopping import Stopping


class TimeRounds(Protocol):
    """Times a given number of rounds."""

    def __call__(self, target: Callable[[], Any], *, setup: Callable[[], Any], rounds: int) -> Any:
        """Call ``setup`` untimed and ``target`` timed, so many times.

        Args:
            target: a round.
            setup: called before each round.
            rounds: how many.
        """


class Benchmark(Protocol):
    """Times the work of one case.

    Attributes:
        fixture: pytest-benchmark's, which users know as ``case.benchmark``.
        time_rounds: calls work in a given number of rounds.
        stopping: what has ended the rounds; None where their number was fixed.
        watch: sets rounds aside at which a GPU was throttled; None where there is none to watch.
    """

    fixture: Any
    stopping: Stopping | None
    watch: GpuWatch | None
    # An attribute and not a method: the fixture's own.
    time_rounds: TimeRounds

    def time(self, run: Callable[[], Any]) -> Any:
        """Call work in as many rounds as its timing takes.

        Args:
            run: one call.

        Returns:
            The result of the last call that was timed, or of the only one where nothing is.
        """

    def rounds_of(self, round_s: float) -> int:
        """Number of rounds of this length within the limits of timing."""

    @property
    def enabled(self) -> bool:
        """True if anything is timed; not with ``--benchmark-disable``."""

    @property
    def timed(self) -> bool:
        """True if rounds have been timed."""

    @property
    def rounds_s(self) -> Sequence[float]:
        """The seconds per call of every round so far; empty where nothing is timed."""

    @property
    def iterations(self) -> int:
        """Number of calls in a round; known once rounds have been timed."""

    @property
    def calls(self) -> int:
        """Number of all calls, including those that are in no statistics.

        0 where that is not known.
        """

    def keep(self, facts: Mapping[str, Any]) -> None:
        """Store what fwbench knows of the case in its record."""

    def leave_unused(self) -> None:
        """Do not warn that nothing was timed: the case has failed before."""

    def discard(self) -> None:
        """Let what was timed have no record, as if a round had failed."""
