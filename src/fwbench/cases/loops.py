"""Training loops as cases: a round is an epoch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from fwbench.cases import learning
from fwbench.cases.epochs import Alone, Epochs, steps_of, whole
from fwbench.cases.training import TrainingCase, data_facts
from fwbench.frameworks.learner import Learner
from fwbench.measure.clock import Clock
from fwbench.measure.resources import peak_memory_bytes, reset_peak_memory
from fwbench.records.facts import CaseFacts, Epoch
from fwbench.terms.presets import Schedule
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.grid import Cell
from fwbench.workloads.objective import Batch
from fwbench.workloads.training import Trains, order


class _Memory:
    """The peak of memory from now on.

    Args:
        device_bytes: that of the device, when it is called.
    """

    def __init__(self, device_bytes: Callable[[], int | None]) -> None:
        self._device_bytes = device_bytes
        known = reset_peak_memory()
        self._before_bytes = peak_memory_bytes() if known else None

    def used(self) -> CaseFacts:
        """Memory in use before, and its peak until now."""
        known = self._before_bytes is not None
        return CaseFacts(
            host_memory_before_bytes=self._before_bytes,
            peak_host_memory_bytes=peak_memory_bytes() if known else None,
            peak_device_memory_bytes=self._device_bytes(),
        )


class LoopCase(TrainingCase):
    """A training loop: a round is an epoch, and the median epoch stands for a launch."""

    statistic = "median"

    def _measure(self) -> None:
        with self._unused_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            stored = self.data()
            data = replace(stored, train=Split(*whole(stored.train)))
            memory = _Memory(self.framework.watch_memory(self.cell.device))
            learner = self.learner()
            # Of its own: only rounds may be seen by the one that gives dispatch times.
            clock = Clock(self._clock.read, self._clock.wait)
            checked, check_s = learning.check(learner, clock, self.checked_steps)
            epochs = self._epochs(learner, data, clock)
        watch = self._watch()
        self._train(epochs)
        condition = self._watched(watch) if watch else CaseFacts()
        if not self._benchmark.timed:
            return
        used = memory.used() | CaseFacts(data_memory_bytes=_size_bytes(stored, data))
        checked |= self._check_timed(learner, data)
        trained = loop_facts(epochs, self.schedule, data)
        self._record(_first_step(check_s) | used | checked | condition | trained)

    def _epochs(self, learner: Learner, data: DataSet, clock: Clock) -> Epochs:
        steps = steps_of(self.schedule, data, self.cell.batch)
        course = Alone(learner, data, steps, clock, self.framework.threads() or 1)
        return Epochs(
            course,
            data,
            self.schedule,
            clock,
            self.gpu,
            decay=self.cell.toggle("decay") == "on",
            timed_s=lambda: self._benchmark.rounds_s,
            tell=lambda epoch, steps: self._tell(epoch_progress(epoch, steps, self.cell)),
        )

    def _train(self, epochs: Epochs) -> None:
        """All rounds, and what lies between them."""
        schedule = self.schedule
        rounds = (schedule.epochs - schedule.warmup_epochs) * schedule.repetitions
        with self.framework.scope(self.cell.device, self.cell.dtype), self._other_processes:
            self._benchmark.time_rounds(epochs.round, setup=epochs.prepare, rounds=rounds)
            with self._discarded_on_failure():
                epochs.finish()

    def _check_timed(self, learner: Learner, data: DataSet) -> CaseFacts:
        """Whole epochs were timed, so it is checked in whole epochs: of one batch, or a few."""
        schedule, batch = self.schedule, self.cell.batch
        unseen = order(len(data.train), schedule.repetitions, schedule.epochs)
        chosen = np.resize(unseen, learning.UPDATES_TIMED * batch)
        examples, labels = whole(Split(data.train.x[chosen], data.train.y[chosen]))
        batches = [
            (examples[i : i + batch], labels[i : i + batch].ravel())
            for i in range(0, chosen.size, batch)
        ]
        with self.framework.scope(self.cell.device, self.cell.dtype), self._discarded_on_failure():
            return learning.check_timed(learner, batches, partial(one_epoch, learner))


def loop_facts(epochs: Epochs, schedule: Schedule, data: DataSet) -> CaseFacts:
    """Facts of a loop that was timed."""
    warmup = [epoch for epoch in epochs.epochs if epoch.warmup]
    about = CaseFacts(
        warmup_calls=len(warmup) * epochs.steps,
        warmup_s=sum(epoch.seconds for epoch in warmup),
        steady=None,
        warmup_epochs=schedule.warmup_epochs,
        repetitions=schedule.repetitions,
        data=data_facts(data),
    )
    return about | epochs.facts()


def epoch_progress(epoch: Epoch, steps: int, cell: Cell) -> dict[str, Any]:
    """Text of an epoch for a live line."""
    training, schedule = cast("Trains", cell.workload).at(cell.size), cell.schedule
    assert schedule is not None  # noqa: S101 (the grid's duty)
    units = steps * cell.batch * training.units_per_example
    return {
        **epoch,
        "epochs": schedule.epochs,
        "repetitions": schedule.repetitions,
        "rate": units / epoch.seconds if epoch.seconds else 0.0,
        "unit": training.unit,
    }


def _size_bytes(*sets: DataSet) -> int:
    """Memory of data sets; parts that they share count once."""
    splits = (split for data in sets for split in (data.train, data.validation, data.test))
    arrays = {id(array): array for split in splits for array in (split.x, split.y)}
    return sum(array.nbytes for array in arrays.values())


def one_epoch(learner: Learner, batches: Sequence[Batch]) -> Sequence[Any]:
    """Train by an epoch over these batches; returns what :meth:`Learner.losses` takes."""
    examples, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    labels = labels.reshape(len(examples), *learner.job.training.labels_shape)
    loader = learner.loader((examples, labels), len(batches))
    loader.set_order(np.arange(len(examples)))
    return learner.epoch(loader)


def _first_step(check_s: Sequence[float]) -> CaseFacts:
    """Time of the first call and of compiling, from the steps of the check."""
    return CaseFacts(
        first_call_in_process_s=check_s[0],
        compile_s=max(0.0, check_s[0] - statistics.median(check_s[1:])),
    )
