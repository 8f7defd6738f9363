"""Training loops that replicas share: a round is an epoch of all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases.epochs import Course, Epochs, steps_of
from fwbench.cases.loops import loop_facts, told
from fwbench.cases.training import read
from fwbench.frameworks.learner import Job
from fwbench.gangs import facts, judgement
from fwbench.gangs.clock import GangClock, Round
from fwbench.gangs.epochs import ReplicaLoop
from fwbench.gangs.gang import Gang
from fwbench.gangs.trainings import SharedStepCase
from fwbench.presets import Schedule
from fwbench.records.facts import CaseFacts
from fwbench.workloads.data import DataSet

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

#: How long examining a model may take beyond its steps: some frameworks compile what answers.
_EXAMINE_S = 60.0


class _Together(Course):
    """The course of a gang, each of whose replicas takes its share of every batch.

    Args:
        gang: has bound the loop.
        job: what is trained, by all replicas together.
        clock: moves by what epochs took.
        step_s: what a step took in the pilot.
        steps: of an epoch.
    """

    def __init__(self, gang: Gang, job: Job, clock: GangClock, step_s: float, steps: int) -> None:
        self.job = job
        self._gang = gang
        self._clock = clock
        self._step_s = step_s
        self._steps = steps
        self._next = (0, 0)

    def begin(self, repetition: int, epoch: int, learning_rate: float | None) -> None:
        """Replicas do it themselves, before they meet; none of them changes its rate."""
        self._next = repetition, epoch

    def train(self) -> Sequence[Any]:
        """The losses of each replica's shares."""
        limit_s = self._gang.limits.of(self._steps * self._step_s)
        doing = f"training epoch {self._next[1] + 1}"
        ranks = self._gang.ask("epoch", *self._next, limit_s=limit_s, doing=doing)
        self._clock.add(Round(self._steps, ranks, whole=True))
        return [rank["losses"] for rank in ranks]

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The means of all shares, which are of one size."""
        return cast("NDArray[Any]", np.mean(losses, axis=0))

    def utilization(self, seconds: float) -> float:
        """By the processor time of all replicas, of their threads."""
        ranks = self._clock.rounds[-1].ranks
        threads = sum(said["threads"] or 1 for said in self._gang.hello)
        return float(sum(rank["cpu_s"] for rank in ranks)) / (seconds * threads)

    def examine(self, part: str, examples: int) -> tuple[float, float]:
        """Each replica examines its copy, as they are equal; worker 0's counts."""
        batches = math.ceil(examples * len(self._gang.hello) / self.job.batch)
        limit_s = _EXAMINE_S + self._gang.limits.of(batches * self._step_s)
        doing = f"examining the model ({part})"
        told = self._gang.ask("examine", part, examples, limit_s=limit_s, doing=doing)[0]
        self._clock.pass_by(told["seconds"])
        return told["loss"], told["accuracy"]


class SharedLoopCase(SharedStepCase):
    """A training loop that replicas share."""

    @property
    def _schedule(self) -> Schedule:
        assert self.cell.schedule is not None  # noqa: S101 (the grid's duty)
        return self.cell.schedule

    @property
    def _data(self) -> DataSet:
        """Read once in a process."""
        assert self.cell.data is not None  # noqa: S101 (the grid's duty)
        return read(self.cell.data, self._cache)

    @property
    def held(self) -> float:
        """With the training set: as it is stored, as numbers, and as the framework has it."""
        return super().held + 3.0 * self._data.train.x.size

    @property
    def loop(self) -> Mapping[str, Any]:
        """Where replicas find their data, and how many steps an epoch has."""
        found = self.cell.data
        assert found is not None  # noqa: S101 (the grid's duty)
        return asdict(
            ReplicaLoop(
                found.name,
                found.source,
                found.origin,
                [*map(str, found.paths)],
                None if self._cache is None else str(self._cache),
                self._steps,
            )
        )

    @property
    def _steps(self) -> int:
        return steps_of(self._schedule, self._data, self.cell.batch)

    def _time(self, gang: Gang, pilot_s: float) -> CaseFacts:
        """All epochs, and what lies between them."""
        cell, schedule, clock = self.cell, self._schedule, cast("GangClock", self._clock)
        job = Job(self._objective, cell.device, cell.execution, cell.dtype, cell.batch)
        epochs = Epochs(
            _Together(gang, job, clock, pilot_s, self._steps),
            self._data,
            schedule,
            clock,
            decay=False,
            timed_s=lambda: self._benchmark.rounds_s,
            tell=lambda epoch, steps: self._tell(told(epoch, steps, cell)),
        )
        rounds = (schedule.epochs - schedule.warmup_epochs) * schedule.repetitions
        before = gang.used()
        with self._other_processes:
            self._benchmark.time_rounds(epochs.round, setup=epochs.prepare, rounds=rounds)
            epochs.finish()
        after = gang.used()
        taken = sum(each.steps for each in clock.rounds)
        judgement.served(before, after, self.updates(taken), "in the timed epochs")
        self._serving = facts.serving(gang.serving, before, after, taken)
        kept = zip(clock.rounds, epochs.epochs, strict=True)
        clock.rounds = [each for each, epoch in kept if not epoch.warmup]
        return loop_facts(epochs, schedule, self._data) | CaseFacts(
            threads=gang.hello[0]["threads"]
        )

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """That of the median epoch, which is there already."""
        return CaseFacts()

    def alone_s(self, gang: Gang) -> float | None:
        """Not known of an epoch: without an exchange its weights would be others."""
        return None
