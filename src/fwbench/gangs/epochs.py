"""What one replica does of a training loop: its share of every batch of an epoch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fwbench.cases.epochs import examined, whole
from fwbench.cases.loops import one_epoch
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member
from fwbench.gangs.rounds import timed_round
from fwbench.gangs.shares import Task, TrainedShare
from fwbench.workloads.data import DataSet, Found, load
from fwbench.workloads.objective import Batch
from fwbench.workloads.training import order


@dataclass(frozen=True)
class ReplicaLoop:
    """What an epoch is made of, as replicas are told of it.

    Attributes:
        name: of the data set, and whether it is ``real``, where it is from and in which files: see
            :class:`~fwbench.workloads.data.Found`.
        source: the same.
        origin: the same.
        paths: the same.
        cache: a folder for what takes long to make of them; None for none.
        steps: of an epoch.
    """

    name: str
    source: str
    origin: str
    paths: Sequence[str]
    cache: str | None
    steps: int

    def read(self) -> DataSet:
        """The data set."""
        paths = tuple(map(Path, self.paths))
        found = Found(self.name, self.source, self.origin, paths, None)
        return _read(found, None if self.cache is None else Path(self.cache))


#: Each data set once in a process.
_read = lru_cache(maxsize=1)(load)


class LoopShare(TrainedShare):
    """A copy of a model, trained epoch by epoch on a share of every batch.

    All replicas visit the training set in the order in which one worker would, and each takes its
    part of every batch: replicas that are one process' equal have its losses.
    """

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        assert task.loop is not None  # noqa: S101 (the controller's duty)
        self._loop = ReplicaLoop(**task.loop)
        self._data = self._loop.read()
        self._loader = self._learner.loader(whole(self._data.train), self._loop.steps)

    def epoch(self, repetition: int, epoch: int) -> dict[str, Any]:
        """Train for an epoch, timed.

        Args:
            repetition: which one, from 0; its first epoch begins at the initial weights.
            epoch: of it, from 0.

        Returns:
            What :func:`~fwbench.gangs.rounds.timed_round` does, and the ``losses`` of this share.
        """
        if epoch == 0:
            self._learner.reset(exact=False)
        seat, batch = self.member.seat, self.task.size
        visited = order(len(self._data.train), repetition, epoch)[: self._loop.steps * batch]
        parts = visited.reshape(self._loop.steps, seat.replicas, batch // seat.replicas)
        self._loader.set_order(parts[:, seat.rank].ravel())
        losses: list[Any] = []

        def train() -> None:
            losses.extend(self._learner.epoch(self._loader))

        told = timed_round(self.member, train, self.waiter(), 1)
        return told | {"losses": self._learner.losses(losses).tolist()}

    def examine(self, part: str, examples: int) -> dict[str, float]:
        """The mean loss and the accuracy of this copy of the model, and how long that took.

        Args:
            part: of the data set.
            examples: how many of it, the first ones.
        """
        start_s = time.perf_counter()
        batch = self._learner.job.batch
        loss, accuracy = examined(self._learner, getattr(self._data, part), examples, batch)
        return {"loss": loss, "accuracy": accuracy, "seconds": time.perf_counter() - start_s}

    def _trained(self, batch: Batch) -> Sequence[Any]:
        """By an epoch of this one batch."""
        return one_epoch(self._learner, [batch])
