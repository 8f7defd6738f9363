"""Training loops that replicas share: a round is an epoch of all of them."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases.epochs import Course, Epochs, Settled, examined, steps_of, whole
from fwbench.cases.training import epoch_progress, loop_facts, one_epoch, read
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Member
from fwbench.gangs.case import SharedStepCase
from fwbench.gangs.gang import Gang
from fwbench.gangs.rounds import GangClock, Round, timed_round
from fwbench.gangs.shares import Task, TrainedShare
from fwbench.records.facts import CaseFacts, Checked
from fwbench.terms.presets import Schedule
from fwbench.workloads.data import DataSet, Found, load
from fwbench.workloads.objective import Batch
from fwbench.workloads.training import order

#: How long evaluating a model may take beyond its steps: some frameworks compile that first.
_EXAMINE_S = 60.0


class _GangCourse(Course):
    """The course of a gang, each of whose replicas takes its share of every batch.

    Args:
        quiet_s: how long all replicas may sleep in the first epoch, whose length nobody knows.
    """

    def __init__(self, gang: Gang, job: Job, clock: GangClock, quiet_s: float, steps: int) -> None:
        self.job = job
        self._gang = gang
        self._clock = clock
        self._quiet_s = quiet_s
        self._step_s = math.inf
        self._steps = steps
        self._next = (0, 0)

    def start_epoch(self, repetition: int, epoch: int, learning_rate: float | None) -> None:
        """Note the epoch: replicas prepare it themselves; none of them changes its rate."""
        self._next = repetition, epoch

    def train(self) -> Sequence[Any]:
        """Train for the epoch, and return the losses of each replica's shares."""
        limit_s = self._gang.limits.limit_s(self._steps * self._step_s)
        doing = f"training epoch {self._next[1] + 1}"
        ranks = self._gang.ask(
            "epoch", *self._next, limit_s=limit_s, doing=doing, quiet_s=self._quiet_s
        )
        done = Round(self._steps, ranks, whole=True)
        self._clock.add(done)
        self._step_s, self._quiet_s = done.step_s, math.inf
        return [rank["losses"] for rank in ranks]

    def losses(self, losses: Sequence[Any], seconds: float) -> NDArray[Any]:
        """The means of all shares, which have one size."""
        return cast("NDArray[Any]", np.mean(losses, axis=0))

    def utilization(self, seconds: float) -> float:
        """The processor time of all replicas as a fraction of their threads' time."""
        ranks = self._clock.rounds[-1].ranks
        threads = sum(greeting["threads"] or 1 for greeting in self._gang.greetings)
        return float(sum(rank["cpu_s"] for rank in ranks)) / (seconds * threads)

    def examine(self, part: str, examples: int) -> tuple[float, float]:
        """Evaluate the model in all replicas, whose copies are equal, and return worker 0's."""
        batches = math.ceil(examples * len(self._gang.greetings) / self.job.batch)
        limit_s = _EXAMINE_S + self._gang.limits.limit_s(batches * self._step_s)
        doing = f"examining the model ({part})"
        answer = self._gang.ask("examine", part, examples, limit_s=limit_s, doing=doing)[0]
        self._clock.pass_by(answer["seconds"])
        return answer["loss"], answer["accuracy"]


class SharedLoopCase(SharedStepCase):
    """A training loop that replicas share."""

    @property
    def _schedule(self) -> Schedule:
        assert self.cell.schedule is not None  # noqa: S101 (the grid's duty)
        return self.cell.schedule

    @property
    def _data(self) -> DataSet:
        assert self.cell.data is not None  # noqa: S101 (the grid's duty)
        return read(self.cell.data, self._cache)

    @property
    def role_numbers(self) -> float:
        """Three copies of the training set in addition: stored, as numbers, in the framework."""
        return super().role_numbers + 3.0 * self._data.train.x.size

    @property
    def loop(self) -> Mapping[str, Any]:
        """The files of the data set, and the steps of an epoch."""
        source = self.cell.data
        assert source is not None  # noqa: S101 (the grid's duty)
        found = asdict(source) | {"paths": [*map(str, source.paths)]}
        cache = None if self._cache is None else str(self._cache)
        return asdict(ReplicaLoop(found, cache, self._steps))

    @property
    def _steps(self) -> int:
        return steps_of(self._schedule, self._data, self.cell.batch)

    def _begin(self, gang: Gang) -> tuple[CaseFacts, Checked, float]:
        """Bind, and no more where epochs are timed: the first one is to be cold."""
        if not self._benchmark.enabled:
            return super()._begin(gang)
        self._bind(gang, self._quiet_s(gang))
        return CaseFacts(), Checked(), math.inf

    def _time(self, gang: Gang, step_s: float) -> CaseFacts:
        cell, schedule, clock = self.cell, self._schedule, cast("GangClock", self._clock)
        job = Job(self._objective, cell.device, cell.execution, cell.dtype, cell.batch)
        epochs = Epochs(
            _GangCourse(gang, job, clock, self._quiet_s(gang), self._steps),
            self._data,
            schedule,
            clock,
            decay=False,
            timed_s=lambda: self._benchmark.rounds_s,
            tell=lambda epoch, steps: self._tell(epoch_progress(epoch, steps, cell)),
        )
        rounds = (schedule.epochs - schedule.warmup_epochs) * schedule.repetitions
        before = gang.usage()
        with self._other_processes:
            self._benchmark.time_rounds(epochs.round, setup=epochs.prepare, rounds=rounds)
            epochs.finish()
        self._judge_rounds(gang, before, "in the timed epochs")
        timed = zip(clock.rounds, epochs.epochs, strict=True)
        clock.rounds = [done for done, epoch in timed if not epoch.warmup]
        trained = loop_facts(epochs, schedule, self._data, is_first=self._is_first)
        return trained | CaseFacts(threads=gang.greetings[0]["threads"])

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """Nothing: the record has the throughput of the median epoch."""
        return CaseFacts()

    def alone_s(self, gang: Gang) -> float | None:
        """None: without an exchange an epoch would have other weights."""
        return None


@dataclass(frozen=True)
class ReplicaLoop:
    """The contents of an epoch, as the controller sends them to replicas."""

    #: The data set, a :class:`~fwbench.workloads.data.Found` as JSON.
    found: Mapping[str, Any]
    #: A folder for what takes long to make of it; None for none.
    cache: str | None
    #: Of an epoch.
    steps: int

    def read(self) -> DataSet:
        """Read the data set, once in a process."""
        data_set = Found(**{**self.found, "paths": tuple(map(Path, self.found["paths"]))})
        return _read(data_set, None if self.cache is None else Path(self.cache))


_read = lru_cache(maxsize=1)(load)


class LoopShare(TrainedShare):
    """A copy of a model, trained epoch by epoch on a share of every batch.

    All replicas visit the training set in the order in which one worker would, and each takes its
    part of every batch: replicas that do the work of one process have its losses.
    """

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        assert task.loop is not None  # noqa: S101 (the controller's duty)
        self._loop = ReplicaLoop(**task.loop)
        self._data = self._loop.read()
        self._loader = self._learner.loader(whole(self._data.train), self._loop.steps)
        self._settled = Settled(self._learner, time.perf_counter)

    def epoch(self, repetition: int, epoch: int) -> dict[str, Any]:
        """Train for an epoch, timed.

        Args:
            repetition: its number, from 0; its first epoch begins at the initial weights.
            epoch: its number in the repetition, from 0.

        Returns:
            The answer of :func:`~fwbench.gangs.rounds.timed_round`, and the ``losses`` of this
            share.
        """
        if epoch == 0:
            self._learner.reset(exact=False)
        place, batch = self.member.place, self.task.size
        visited = order(len(self._data.train), repetition, epoch)[: self._loop.steps * batch]
        parts = visited.reshape(self._loop.steps, place.replicas, batch // place.replicas)
        losses: list[Any] = []

        def train() -> None:
            self._loader.set_order(parts[:, place.rank].ravel())
            losses.extend(self._learner.epoch(self._loader))

        answer = timed_round(self.member, train, self.waiter(), 1)
        return answer | {"losses": self._settled.losses(losses, answer["seconds"]).tolist()}

    def examine(self, part: str, examples: int) -> dict[str, float]:
        """The mean loss and the accuracy of this copy of the model, and the seconds that took."""
        start_s = time.perf_counter()
        batch = self._learner.job.batch
        loss, accuracy = examined(self._learner, getattr(self._data, part), examples, batch)
        return {"loss": loss, "accuracy": accuracy, "seconds": time.perf_counter() - start_s}

    def _trained(self, shares: Sequence[Batch]) -> Sequence[Any]:
        """Train for an epoch of these alone."""
        return one_epoch(self._learner, shares)
