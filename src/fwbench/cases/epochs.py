"""Train epoch by epoch: pytest-benchmark times the rounds, everything else happens between them.

One round is one epoch. Before each round pytest-benchmark calls :meth:`Epochs.prepare`, which
finishes what the epoch before left (losses, validation) and trains the warm-up epochs where a
repetition begins. So validation is in no round, and no warm-up epoch in the statistics.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases.timing import settled_s
from fwbench.errors import DataError, Diverged, UnfinishedWork, WrongTraining
from fwbench.frameworks.learner import Job, Learner
from fwbench.measure.clock import Clock
from fwbench.measure.nvml import Energy, EnergyMeter, Gpu, GpuUse
from fwbench.measure.resources import CpuClock
from fwbench.records.facts import CaseFacts, Epoch, EpochGpu, Tested
from fwbench.terms.names import compiles
from fwbench.terms.presets import Schedule
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.training import Batch, order

#: After these epochs the test accuracy is known, and at the end: those of the 2020 report.
_MILESTONES = (5, 10, 15)

#: Points of the recorded curve of an epoch.
_CURVE_POINTS = 10

_REMEDY = "lower the learning rate or use a wider dtype"

_DECAY = 0.9
_DECAY_EACH = 10


class Course(ABC):
    """A training, epoch by epoch, with an examination after each."""

    #: What is trained; its batch is that of a whole step.
    job: Job

    @abstractmethod
    def start_epoch(self, repetition: int, epoch: int, learning_rate: float | None) -> None:
        """Make an epoch ready, from the initial weights if it is the first of a repetition.

        Args:
            repetition: which one, from 0.
            epoch: of it, from 0.
            learning_rate: of the epoch; None for that of the optimiser.
        """

    @abstractmethod
    def train(self) -> Sequence[Any]:
        """The epoch that was made ready: what is timed; returns what :meth:`losses` takes."""

    @abstractmethod
    def losses(self, losses: Sequence[Any], seconds: float) -> NDArray[Any]:
        """The loss of every step of an epoch, which has taken these seconds, as NumPy's numbers."""

    @abstractmethod
    def utilization(self, seconds: float) -> float:
        """The share of its processors that an epoch of ``seconds`` seconds was busy on."""

    @abstractmethod
    def examine(self, part: str, examples: int) -> tuple[float, float]:
        """Mean cross-entropy and accuracy so far on a part of the data, such as ``validation``."""


class Settled:
    """Losses of epochs, read while it is checked that nothing was left to do behind them.

    Args:
        read: the clock.
    """

    def __init__(self, learner: Learner, read: Callable[[], float]) -> None:
        self._learner = learner
        self._read = read
        self._late_s: list[float] = []

    def losses(self, losses: Sequence[Any], seconds: float) -> NDArray[Any]:
        """The losses of an epoch of so many seconds.

        Raises:
            UnfinishedWork: reading them changes the weights, or the weights had to be waited for
                behind every epoch, of at least two.
        """
        begun_s = self._read()
        before = self._learner.checksum()
        first_s = self._read() - begun_s
        found = self._learner.losses(losses)
        begun_s = self._read()
        is_over = self._learner.checksum() == before
        late_s = first_s - settled_s(self._read() - begun_s, seconds)
        self._late_s.append(late_s if seconds else 0.0)  # nothing was timed, nor waited for
        # The first epoch is cold, and so is the first reading.
        if not is_over or (len(self._late_s) > 1 and min(self._late_s) > 0):
            raise UnfinishedWork(
                "an epoch is over for the clock before its updates are there: the weights "
                f"{'are late' if is_over else 'change while its losses are read'}; train in "
                "`epoch`, return from it when nothing is left to do but for the device, and from "
                "the framework's `waiter` when all work is done"
            )
        return found


class Alone(Course):
    """One learner's course."""

    def __init__(
        self, learner: Learner, data: DataSet, steps: int, clock: Clock, threads: int
    ) -> None:
        self.job = learner.job
        self._learner = learner
        self._data = data
        self._clock = clock
        self._threads = threads
        self._loader = learner.loader(whole(data.train), steps)
        self._visited = steps * learner.job.batch
        self._settled = Settled(learner, clock.read)
        self._cpu = CpuClock()

    def start_epoch(self, repetition: int, epoch: int, learning_rate: float | None) -> None:
        """All weights, the order of examples, and a device that has nothing left to do."""
        if epoch == 0:
            self._learner.reset(exact=False)
        if learning_rate is not None:
            self._learner.set_learning_rate(learning_rate)
        self._order = order(len(self._data.train), repetition, epoch)[: self._visited]
        if self._clock.wait is not None:
            self._clock.wait()
        self._cpu.start()

    def train(self) -> Sequence[Any]:
        """By the learner's own epoch; examples are gathered in its time, which have their order."""
        self._loader.set_order(self._order)
        return self._learner.epoch(self._loader)

    def losses(self, losses: Sequence[Any], seconds: float) -> NDArray[Any]:
        """Losses from the learner, all of whose updates are there."""
        return self._settled.losses(losses, seconds)

    def utilization(self, seconds: float) -> float:
        """By this process' processor time."""
        return self._cpu.utilization(seconds, self._threads)

    def examine(self, part: str, examples: int) -> tuple[float, float]:
        """By the learner's answers."""
        return examined(self._learner, getattr(self._data, part), examples, self.job.batch)


def examined(learner: Learner, split: Split, examples: int, batch: int) -> tuple[float, float]:
    """Mean cross-entropy and accuracy, the last, shorter batch included.

    Args:
        batch: how many at once: the answers to a text would take gigabytes.
    """
    questions, labels = whole(Split(split.x[:examples], split.y[:examples]))
    judged = [
        judge(learner.logits(questions[i : i + batch]), labels[i : i + batch].ravel())
        for i in range(0, examples, batch)
    ]
    counts = [min(batch, examples - i) for i in range(0, examples, batch)]
    loss, accuracy = np.average(judged, axis=0, weights=counts)
    return float(loss), float(accuracy)


class Epochs:
    """The epochs of one case.

    Args:
        clock: for what pytest-benchmark does not time; waits for the device.
        gpu: of the case; None for the CPU, and where it is not known.
        decay: whether the learning rate falls.
        timed_s: the seconds of the rounds so far, as pytest-benchmark has them.
        tell: called with every epoch when it is over, and how many steps it had.
    """

    def __init__(
        self,
        course: Course,
        data: DataSet,
        schedule: Schedule,
        clock: Clock,
        gpu: Gpu | None = None,
        *,
        decay: bool,
        timed_s: Callable[[], Sequence[float]],
        tell: Callable[[Epoch, int], Any],
    ) -> None:
        self.epochs: list[Epoch] = []
        self.steps = steps_of(schedule, data, course.job.batch)
        self._course = course
        self._data = data
        self._schedule = schedule
        self._clock = clock
        self._gpu = gpu
        self._decay = decay
        self._timed_s = timed_s
        self._tell = tell
        self._position = (0, 0)  # repetition and epoch that come next, from 0
        self._losses: Sequence[Any] | None = None

    def prepare(self) -> None:
        """Make everything ready for the next round."""
        self.finish()
        if self._over:
            return
        while self._position[1] < self._schedule.warmup_epochs:
            self._begin()
            seconds, losses = self._clock.time(self._course.train)
            self._end(seconds, losses)
        self._begin()

    def round(self) -> None:
        """One epoch: what is timed."""
        self._losses = self._course.train()

    def finish(self) -> None:
        """End the epoch of the last round, if there was one."""
        if self._losses is not None:
            losses, self._losses = self._losses, None
            if self._over:
                return
            timed_s = self._timed_s()
            # Nothing is timed where pytest-benchmark is disabled.
            self._end(timed_s[-1] if timed_s else 0.0, losses)

    @property
    def _over(self) -> bool:
        """True if all is trained: an epoch more is for pytest-benchmark's profile."""
        return self._position[0] == self._schedule.repetitions

    def _begin(self) -> None:
        repetition, epoch = self._position
        rate = self._course.job.training.optimizer.learning_rate * _DECAY ** (epoch // _DECAY_EACH)
        self._course.start_epoch(repetition, epoch, rate if self._decay else None)
        self._energy = EnergyMeter(self._gpu, self._clock)

    def _end(self, seconds: float, losses: Sequence[Any]) -> None:
        energy = self._energy.used()
        utilization = self._course.utilization(seconds) if seconds else 0.0
        gpu = self._gpu.use() if self._gpu else None
        repetition, epoch = self._position
        step_losses = as_many(self._course.losses(losses, seconds), self.steps)
        self._refuse_divergence(step_losses, epoch)
        validation_s, (loss, accuracy) = self._clock.time(lambda: self._examined("validation"))
        if not np.isfinite(loss):
            raise Diverged(
                f"the validation loss is {loss} after epoch {epoch + 1}: the last update made the "
                f"weights useless; {_REMEDY}"
            )
        last = epoch + 1 == self._schedule.epochs
        tested = None
        if last or epoch + 1 in _MILESTONES:
            tested = accuracy if self._data.validation_is_test else self._examined("test")[1]
        self.epochs.append(
            Epoch(
                repetition=repetition + 1,
                epoch=epoch + 1,
                warmup=epoch < self._schedule.warmup_epochs,
                seconds=seconds,
                train_loss=float(step_losses.mean()),
                train_losses=_thinned(step_losses),
                validation_loss=loss,
                validation_accuracy=accuracy,
                validation_s=validation_s,
                cpu_utilization=utilization,
                gpu=None if gpu is None else _used(gpu, energy),
                test_accuracy=tested,
            )
        )
        self._tell(self.epochs[-1], self.steps)
        self._position = (repetition + 1, 0) if last else (repetition, epoch + 1)

    def _refuse_divergence(self, losses: NDArray[Any], epoch: int) -> None:
        wrong = np.flatnonzero(~np.isfinite(losses))
        if wrong.size:
            raise Diverged(
                f"the loss became {losses[wrong[0]]} at step {wrong[0] + 1} of {self.steps} in "
                f"epoch {epoch + 1}: training has diverged, and what follows would time work on "
                f"NaNs; {_REMEDY}"
            )

    def _examined(self, part: str) -> tuple[float, float]:
        """Mean cross-entropy and accuracy."""
        return self._course.examine(part, self._evaluated(getattr(self._data, part)))

    def _evaluated(self, split: Split) -> int:
        """All examples; where an epoch is cut short, no more than it trains on."""
        batch = self._course.job.batch
        cut_short = self.steps < len(self._data.train) // batch
        return min(len(split), self.steps * batch) if cut_short else len(split)

    def facts(self) -> CaseFacts:
        """All epochs, and what they come to, for the record."""
        every = CaseFacts(
            epochs=self.epochs,
            steps_per_epoch=self.steps,
            validated_examples=self._evaluated(self._data.validation),
            tested_examples=self._evaluated(self._data.test),
        )
        return every | _summary(self.epochs, self._course.job, self.steps)


def _thinned(losses: NDArray[Any]) -> list[float]:
    """The mean of each tenth of the losses: enough to compare curves, and small in a record."""
    return [float(part.mean()) for part in np.array_split(losses, min(losses.size, _CURVE_POINTS))]


def _used(gpu: GpuUse, energy: Energy | None) -> EpochGpu:
    if energy is None:
        return EpochGpu(**asdict(gpu), energy_j=None)
    return EpochGpu(**asdict(gpu), energy_j=energy.joules, energy_uncertainty=energy.uncertainty)


def _energy(epochs: Sequence[Epoch]) -> CaseFacts:
    """The median epoch's energy, and the largest uncertainty; nothing where none is known."""
    known = [e.gpu for e in epochs if not e.warmup and e.gpu and e.gpu.energy_j]
    if not known:
        return CaseFacts()
    return CaseFacts(
        energy_j=float(np.median([gpu.energy_j for gpu in known])),
        energy_uncertainty=max(gpu.energy_uncertainty or 0.0 for gpu in known),
    )


def _summary(epochs: Sequence[Epoch], job: Job, steps: int) -> CaseFacts:
    timed_s = [epoch.seconds for epoch in epochs if not epoch.warmup]
    epoch_s = float(np.median(timed_s))
    training = job.training
    units = steps * job.batch * training.units_per_example
    repetitions = range(1, 1 + max(epoch.repetition for epoch in epochs))
    rate: dict[str, Any] = {f"{training.unit}_per_s": units / epoch_s}
    return _energy(epochs) | CaseFacts(
        epoch_s=epoch_s,
        step_s=epoch_s / steps,
        total_s=[sum(e.seconds for e in epochs if e.repetition == r) for r in repetitions],
        compile_s=max(0.0, epochs[0].seconds - epoch_s) if compiles(job.execution) else None,
        first_epoch_excess=epochs[0].seconds / epoch_s - 1.0,
        test_accuracy=[
            Tested(repetition=e.repetition, epoch=e.epoch, accuracy=e.test_accuracy)
            for e in epochs
            if e.test_accuracy is not None
        ],
        cpu_utilization=float(
            np.median([e.cpu_utilization or 0.0 for e in epochs if not e.warmup])
        ),
        **rate,
    )


def steps_of(schedule: Schedule, data: DataSet, batch: int) -> int:
    """Number of whole batches in an epoch.

    Args:
        schedule: whose ``steps`` are the most there may be.

    Raises:
        DataError: there are not as many examples; of some data sets only reading them tells.
    """
    steps = len(data.train) // batch
    if not steps:
        raise DataError(
            f"a batch of {batch} is larger than the {len(data.train)} training examples of "
            f"{data.name} ({data.origin}); give a smaller --fw-size, or more data"
        )
    return steps if schedule.steps is None else min(steps, schedule.steps)


def whole(split: Split) -> Batch:
    """A part of a data set as it is learned from: images as float32 from 0 to 1."""
    if split.x.dtype == np.uint8:
        return np.divide(split.x, 255, dtype=np.float32), split.y
    return split.x, split.y


def as_many(losses: NDArray[Any], steps: int) -> NDArray[Any]:
    """The losses, if there is one for each step.

    Raises:
        WrongTraining: there are fewer, or more.
    """
    if losses.shape != (steps,):
        raise WrongTraining(
            f"{steps} batches were to be trained on, and the learner returned {losses.size} "
            "losses: it trains on other batches, or its `losses` does not give one for each step"
        )
    return losses


def judge(logits: NDArray[Any], labels: NDArray[Any]) -> tuple[float, float]:
    """The mean loss and the accuracy of answers.

    Args:
        logits: a row for each example.

    Returns:
        Mean softmax cross-entropy, and the share of right answers.
    """
    accuracy = float((logits.argmax(axis=1) == labels).mean())
    return float(surprise(logits, labels).mean()), accuracy


def surprise(logits: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """The softmax cross-entropy of each answer."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    losses: NDArray[Any] = np.log(np.exp(shifted).sum(axis=1))
    return losses - shifted[np.arange(labels.size), labels]
