"""What times the work of a case, as cases see it; the plugin adapts pytest-benchmark to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


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
        time: calls work in as many rounds as its timing takes, and returns its last result.
        time_rounds: calls work in a given number of rounds.
    """

    fixture: Any
    # Attributes and not methods: they are the fixture's own, so that no frame of fwbench's stands
    # between pytest-benchmark and the work.
    time: Callable[[Callable[[], Any]], Any]
    time_rounds: TimeRounds

    @property
    def enabled(self) -> bool:
        """Whether anything is timed; not with ``--benchmark-disable``."""

    @property
    def timed(self) -> bool:
        """Whether rounds have been timed."""

    @property
    def rounds_s(self) -> Sequence[float]:
        """The seconds per call of every round so far; empty where nothing is timed."""

    @property
    def iterations(self) -> int:
        """How many calls a round has; known once rounds have been timed."""

    def keep(self, facts: Mapping[str, Any]) -> None:
        """Store what fwbench knows of the case in its record."""

    def leave_unused(self) -> None:
        """Do not warn that nothing was timed: the case has failed before."""

    def discard(self) -> None:
        """Let what was timed have no record, as if a round had failed."""
