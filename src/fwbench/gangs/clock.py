"""pytest-benchmark's timer where a gang does the work: it shows what worker 0's clock has shown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.measure.clock import Clock, RoundFacts, preempted_rounds
from fwbench.measure.resources import CpuUse


@dataclass(frozen=True)
class Round:
    """Steps that all replicas took together.

    Attributes:
        steps: how many.
        ranks: what :func:`~fwbench.gangs.rounds.timed_round` told of each replica.
        whole: whether a record counts all of them together, as it does epochs, and not each.
    """

    steps: int
    ranks: Sequence[Mapping[str, Any]]
    whole: bool = False

    @property
    def counted(self) -> int:
        """How many times a record would count a round."""
        return 1 if self.whole else self.steps

    @property
    def step_s(self) -> float:
        """Seconds of a step, by worker 0's clock."""
        return float(self.ranks[0]["seconds"]) / self.steps


class GangClock(Clock):
    """A clock that moves by what a round took in the gang, and by nothing else.

    A controller's messages take time, too. So the clock that pytest-benchmark reads before and
    after a round stands still but for :meth:`add`, by the seconds of one step or epoch.

    Attributes:
        rounds: all that were added.
    """

    #: A step's time is that of many, divided: it is finer than any reading.
    precision_s = 1e-9

    def __init__(self) -> None:
        self._now_s = 0.0
        self.rounds: list[Round] = []
        super().__init__(self._read)
        self.__name__ = "gang"

    def _read(self) -> float:
        return self._now_s

    def __call__(self) -> float:
        """The seconds of a step, or of the epoch, of each round so far, added up."""
        return self._now_s

    def add(self, done: Round) -> None:
        """Let the time of a step of a round pass, or that of an epoch."""
        self.rounds.append(done)
        self.pass_by(float(done.ranks[0]["seconds"]) / done.counted)

    def pass_by(self, seconds: float) -> None:
        """Let time pass that is in no round."""
        self._now_s += seconds

    def facts(self, rounds_s: Sequence[float], iterations: int) -> RoundFacts:
        """What is known of the rounds that were just measured, of all replicas together.

        Args:
            rounds_s: seconds of a step, or of the epoch, of each round.
            iterations: 1.
        """
        rounds = self.rounds[-len(rounds_s) :]
        return {
            "completion_s": statistics.median(rounds_s),
            "cpu_s": sum(rank["cpu_s"] / each.counted for each in rounds for rank in each.ranks),
            "wall_s": sum(rounds_s),
            "preempted": sum(map(_was_preempted, rounds)) / len(rounds),
        }


def _was_preempted(done: Round) -> bool:
    """Whether a replica lost a processor in a round."""
    return any(
        preempted_rounds(1, rank["seconds"], CpuUse(rank["cpu_s"], rank["preempted"]))
        for rank in done.ranks
    )
