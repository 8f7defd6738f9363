"""Training as cases: the check of equal work, a step, a loader, and whole loops."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from fwbench.cases import verify
from fwbench.cases.case import Case
from fwbench.cases.epochs import Epochs, steps_of, whole
from fwbench.cases.work import Work
from fwbench.errors import WrongResult
from fwbench.frameworks.learner import Job, Learner
from fwbench.measure.clock import Clock
from fwbench.measure.resources import peak_memory_bytes, reset_peak_memory
from fwbench.presets import Schedule
from fwbench.records.facts import CaseFacts, Data, Epoch
from fwbench.workloads.data import DataSet, load
from fwbench.workloads.models import trajectories
from fwbench.workloads.training import CHECKED_STEPS, Training, Trains, order

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True


#: How many where nothing is timed: an eager LSTM takes TensorFlow seconds a step.
_CHECKED_UNTIMED = 3


def check(learner: Learner, clock: Clock, steps: int) -> tuple[CaseFacts, list[float]]:
    """Check that this is the same training everywhere: parameters, and the first losses.

    Args:
        learner: trained for a few steps, and then back at its initial weights.
        clock: waits for the device.
        steps: how many losses to compare.

    Returns:
        What was found, for the record, and the seconds that each step took.

    Raises:
        WrongTraining: the parameters or the losses differ from the reference's.
    """
    training, dtype = learner.job.training, learner.job.dtype
    verify.parameters(learner.parameters(), training.parameters)
    learner.reset(exact=True)
    seconds, losses = [], []
    for batch in training.check_batches(learner.job.batch)[:steps]:
        placed = learner.place(batch)
        step_s, loss = clock.time(partial(learner.step, *placed))
        seconds.append(step_s)
        losses.append(loss)
    notes = learner.notes()
    expected = trajectories.expected_losses(
        training, learner.job.batch, lazy=notes.get("update") == "lazy"
    )
    actual = learner.losses(losses)
    deviation = verify.losses(actual, expected[: len(actual)], dtype)
    learner.reset(exact=False)
    facts = CaseFacts(
        parameters=training.parameters,
        checked_steps=len(actual),
        max_loss_deviation=deviation,
        loss_tolerance=verify.LOSS_TOLERANCES[dtype],
        optimizer={**_constants(training), **notes},
    )
    return facts, seconds


def _constants(training: Training) -> dict[str, Any]:
    optimizer = training.optimizer
    return {"name": type(optimizer).__name__, **vars(optimizer)}


def data_facts(data: DataSet) -> Data:
    """Where the numbers came from, for the record."""
    return Data(
        name=data.name,
        source=data.source,
        origin=data.origin,
        digest=data.digest,
        train=int(data.train.y.size),
        validation="test" if data.validation_is_test else int(data.validation.y.size),
        test=int(data.test.y.size),
    )


class _Step(Work):
    """One step on a batch that lies on the device."""

    def __init__(self, learner: Learner, clock: Clock, steps: int) -> None:
        self._learner = learner
        self._clock = clock
        self._steps = steps
        learner.reset(exact=False)
        batch = learner.job.training.check_batches(learner.job.batch)[0]
        self.run = partial(learner.step, *learner.place(batch))

    def verify(self, result: Any) -> CaseFacts:
        """The first losses are the reference's.

        Raises:
            WrongTraining: they are not the reference's.
        """
        facts, _ = check(self._learner, self._clock, self._steps)
        return facts


class _Pass(Work):
    """One pass over the batches of an epoch; ``run`` returns the last one."""

    def __init__(
        self, learner: Learner, data: DataSet, steps: int, to_numpy: Callable[[Any], Any]
    ) -> None:
        self._learner = learner
        self._data = data
        self._steps = steps
        self._to_numpy = to_numpy
        self._order = order(data.train.y.size, 0, 0)[: steps * learner.job.batch]
        self._loader = learner.loader(whole(data.train), steps)
        self._loader.set_order(self._order)
        self.run = partial(deque, self._loader, maxlen=1)

    def verify(self, result: Any) -> CaseFacts:
        """As many batches as there should be, and the last has the examples that it should have.

        Raises:
            WrongResult: the batches or their examples differ.
        """
        count = sum(1 for _ in self._loader)
        if count != self._steps:
            raise WrongResult(
                f"the loader gives {count} batches, and {self._steps} were asked for: its length "
                "or its treatment of the last examples is wrong"
            )
        examples, labels = whole(self._data.train)
        chosen = self._order[-self._learner.job.batch :]
        placed = self._learner.place((examples[chosen], labels[chosen]))
        for actual, expected in zip(result[0], placed, strict=True):
            if not np.array_equal(self._to_numpy(actual), self._to_numpy(expected)):
                raise WrongResult(
                    "the loader's last batch does not hold the examples that it was asked for: "
                    "their order or their layout is wrong"
                )
        return CaseFacts(steps_per_epoch=self._steps, data=data_facts(self._data))


class TrainingCase(Case):
    """What cases of training have in common."""

    @property
    def training(self) -> Training:
        """The loop that is measured, or a part of it."""
        return cast("Trains", self.cell.workload).loop

    @property
    def schedule(self) -> Schedule:
        """How long to train, as the grid has settled it."""
        assert self.cell.schedule is not None  # noqa: S101 (the grid's duty)
        return self.cell.schedule

    @property
    def checked_steps(self) -> int:
        """How many losses are compared with the reference's."""
        return CHECKED_STEPS if self._benchmark.enabled else _CHECKED_UNTIMED

    def learner(self) -> Learner:
        """The framework's learner, with its model built and its weights the initial ones."""
        cell = self.cell
        return self.framework.learner(
            Job(
                self.training,
                cell.device,
                cell.execution,
                cell.dtype,
                cell.size,
                workers=int(cell.toggle("workers")),
                sparse=cell.toggle("sparse") == "on",
            )
        )

    def data(self) -> DataSet:
        """The data set, read once in a process."""
        assert self.cell.data is not None  # noqa: S101 (the grid's duty)
        return _load(self.cell.data, self._cache)


class StepCase(TrainingCase):
    """The case of one step on a batch that lies on the device."""

    def bind(self) -> Work:
        """A batch on the device, and a learner that has not seen it."""
        return _Step(self.learner(), self._clock, self.checked_steps)

    def _record(self, facts: CaseFacts) -> None:
        """With what the first call took beyond a typical one."""
        if self._benchmark.timed and facts.first_call_s is not None:
            typical_s = statistics.median(self._benchmark.rounds_s)
            facts |= CaseFacts(compile_s=max(0.0, facts.first_call_s - typical_s))
        super()._record(facts)


class LoaderCase(TrainingCase):
    """The case of one pass of a loader over the training set."""

    def bind(self) -> Work:
        """The framework's loader over the training set."""
        data = self.data()
        steps = steps_of(self.schedule, data, self.cell.size)
        return _Pass(self.learner(), data, steps, self.framework.to_numpy)


class LoopCase(TrainingCase):
    """A training loop: a round is an epoch, and the median epoch stands for a launch."""

    statistic = "median"

    def _measure(self) -> None:
        benchmark, schedule, device = self._benchmark, self.schedule, self.cell.device
        with self._unused_on_failure(), self.framework.scope(device, self.cell.dtype):
            data = self.data()
            memory_known = reset_peak_memory()
            memory_before_bytes = peak_memory_bytes()
            device_memory_bytes = self.framework.watch_memory(device)
            learner = self.learner()
            # Of its own: only rounds may be seen by the one that gives dispatch times.
            clock = Clock(self._clock.read, self._clock.wait)
            checked, check_s = check(learner, clock, self.checked_steps)
            epochs = Epochs(
                learner,
                data,
                schedule,
                clock,
                self.framework.threads() or 1,
                decay=self.cell.toggle("decay") == "on",
                timed_s=lambda: benchmark.rounds_s,
                tell=self._tell_of,
            )
        with self.framework.scope(device, self.cell.dtype), self._other_processes:
            benchmark.time_rounds(
                epochs.round,
                setup=epochs.prepare,
                rounds=(schedule.epochs - schedule.warmup_epochs) * schedule.repetitions,
            )
            try:
                epochs.finish()
            except BaseException:
                benchmark.discard()
                raise
        if not benchmark.timed:
            return
        warmup = [epoch for epoch in epochs.epochs if epoch.warmup]
        about = CaseFacts(
            first_call_s=check_s[0],
            compile_s=max(0.0, check_s[0] - statistics.median(check_s[1:])),
            warmup_calls=len(warmup) * epochs.steps,
            warmup_s=sum(epoch.seconds for epoch in warmup),
            steady=None,
            warmup_epochs=schedule.warmup_epochs,
            repetitions=schedule.repetitions,
            data=data_facts(data),
            host_memory_before_bytes=memory_before_bytes if memory_known else None,
            peak_host_memory_bytes=peak_memory_bytes() if memory_known else None,
            peak_device_memory_bytes=device_memory_bytes(),
        )
        self._record(about | checked | epochs.facts())

    def _tell_of(self, epoch: Epoch, steps: int) -> None:
        """Say what a live line shows."""
        units = steps * self.cell.size * self.training.units_per_example
        self._tell(
            {
                **epoch,
                "epochs": self.schedule.epochs,
                "repetitions": self.schedule.repetitions,
                "rate": units / epoch.seconds if epoch.seconds else 0.0,
                "unit": self.training.unit,
            }
        )


#: A process may train on two data sets by turns; more would only take memory.
_load = lru_cache(maxsize=2)(load)
