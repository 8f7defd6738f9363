"""A fake framework that trains: no model learns; losses, answers and times are fields of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.checkpoints import CheckpointCase
from fwbench.cases.epochs import judge
from fwbench.cases.training import LoaderCase, LoopCase, StepCase
from fwbench.frameworks.learner import Job, Learner, Loader, Placed
from fwbench.terms.presets import Schedule
from fwbench.testing import FakeFramework
from fwbench.workloads import mlp
from fwbench.workloads.data import DataSet, Found, Split
from fwbench.workloads.models import reference, trajectories
from fwbench.workloads.training import (
    CHECKED_STEPS,
    Batch,
    Loading,
    Restoring,
    Saving,
    Step,
    Training,
    check_rows,
)
from support.fakes import case_of, cell, recorded


def right_losses(job: Job) -> Sequence[float]:
    """The losses of the check, as all_greetings must have them."""
    return trajectories.expected_losses(job.training, job.batch, update="dense")


@lru_cache
def _right_logits(training: Training, batch: int) -> NDArray[Any]:
    """The answers by the initial weights to the examples of the check."""
    ((rows, _),) = training.check_batches(batch, 1)
    wide = rows if training.vocabulary else rows.astype(np.float64)
    return reference.inference(training.graph, training.initial(), wide)


def equal_logits(examples: NDArray[Any]) -> NDArray[Any]:
    """The same logit for each of ten classes."""
    return np.zeros((len(examples), 10))


def answering(*rows: Sequence[float]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Answers with the row of logits that the first pixel of an example says, or with the last."""
    table = np.array(rows)
    return lambda examples: table.take(
        np.rint(examples.reshape(len(examples), -1)[:, 0] * 255).astype(int), axis=0, mode="clip"
    )


class FakeLoader(Loader):
    """Batches by index."""

    def __init__(self, learner: "FakeLearner", batch: Batch) -> None:
        self.learner = learner
        self.batch = batch
        self.order: NDArray[Any] = np.arange(0)

    def set_order(self, order: NDArray[Any]) -> None:
        self.order = order
        self.learner.events.append(("order", *order.tolist()))

    def __iter__(self) -> Iterator[Placed]:
        by = self.learner.by
        examples, labels = self.batch
        for chosen in np.split(self.order, len(self.order) // self.learner.job.batch):
            by.clock.spend(by.load_s)
            yield self.learner.place(by.loads((examples[chosen], labels[chosen])))


class FakeLearner(Learner):
    """Does as the fields of its framework say, and notes what it was asked for.

    Attributes:
        by: the framework.
        events: resets, learning rates, orders, epochs and evaluations, one after the other.
        steps: since the last reset.
        updates: of them that changed the weights.
    """

    executions = ("eager", "graph", "fit")

    def __init__(self, job: Job, by: "Trainer") -> None:
        super().__init__(job)
        self.by = by
        self.events: list[tuple[Any, ...]] = []
        self.steps = 0
        self.updates = 0
        self._first = [by.first_s]

    def events_of(self, kind: str) -> list[list[Any]]:
        """The arguments of the events of one kind."""
        return [[*event[1:]] for event in self.events if event[0] == kind]

    def step(self, examples: Any, labels: Any) -> Any:
        by = self.by
        by.called.append(by.entered)
        by.clock.spend(self._first.pop() if self._first else 0.0)
        by.clock.spend(by.dispatch_s)
        by.clock.enqueue(by.step_s(self.steps))
        if not by.asynchronous:
            by.clock.wait()
        before = self.steps
        self.steps += 1
        self.updates += by.updates(before)
        if self._is_checked(examples, before):
            return by.check_losses(self.job)[before]
        return by.loss_of(before) if by.loss_of else judge(by.answers(examples), labels)[0]

    def _is_checked(self, examples: Any, step: int) -> bool:
        """True if a step from the initial weights on has the examples of the check."""
        batches = self.job.training.check_batches(self.job.batch, CHECKED_STEPS)
        return step < CHECKED_STEPS and np.array_equal(examples, batches[step][0])

    def reset(self, *, exact: bool) -> None:
        self.events.append(("reset", exact))
        self.by.clock.enqueue(self.by.reset_s)
        self.steps = self.updates = 0

    def set_learning_rate(self, learning_rate: float) -> None:
        self.events.append(("rate", learning_rate))

    def weights(self) -> list[NDArray[Any]]:
        self.by.clock.wait()
        return [np.array(self.updates)]

    def parameters(self) -> int:
        return self.job.training.parameters + self.by.too_many

    def place(self, batch: Batch) -> Placed:
        return batch

    def loader(self, batch: Batch, steps: int) -> Loader:
        return FakeLoader(self, batch)

    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        self.events.append(("epoch",))
        return super().epoch(batches)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        self.by.clock.wait()
        return np.asarray(losses, dtype=np.float64)

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        training = self.job.training
        ((rows, _),) = training.check_batches(check_rows(self.job.batch), 1)
        again = ("reset", True)  # as in the check, once for its steps, and again for its answers
        is_checked = self.events[-1:] == [again] and self.events.count(again) > 1
        if is_checked and np.array_equal(examples, rows):
            return _right_logits(training, check_rows(self.job.batch))
        self.events.append(("logits", len(examples)))
        self.by.clock.spend(self.by.logits_s)
        return self.by.answers(examples)

    def notes(self) -> dict[str, Any]:
        return self.by.noted


@dataclass
class Trainer(FakeFramework):
    """The fake framework, with learners.

    Attributes:
        step_s: what a step enqueues, by how many there were since the last reset.
        reset_s: what going back to the initial weights enqueues.
        load_s: what the next batch of a loader costs.
        logits_s: what answering for a batch costs.
        check_losses: of the check.
        loss_of: of training, by how many steps there were since the last reset; None for the loss
            of the answers.
        updates: whether a step changes the weights, by how many there were since the last reset.
        answers: the logits for examples.
        too_many: how many parameters there are beside those of the description.
        noted: how its training differs from others'.
        loads: what a loader makes of a batch.
        learners: all that it has made.
        kind: their class.
    """

    step_s: Callable[[int], float] = lambda _: 2.0**-4
    reset_s: float = 0.0
    load_s: float = 0.0
    logits_s: float = 0.0
    check_losses: Callable[[Job], Sequence[float]] = right_losses
    loss_of: Callable[[int], float] | None = None
    updates: Callable[[int], bool] = lambda _: True
    answers: Callable[[NDArray[Any]], NDArray[Any]] = equal_logits
    too_many: int = 0
    noted: dict[str, Any] = field(default_factory=dict)
    loads: Callable[[Batch], Batch] = lambda batch: batch
    learners: list[FakeLearner] = field(default_factory=list)
    kind: type[FakeLearner] = FakeLearner

    def learner(self, job: Job) -> Any:
        self.learners.append(self.kind(job, self))
        return self.learners[-1]


def split(labels: Sequence[int]) -> Split:
    """Images of one pixel, whose value is their place; and these labels."""
    pixels = np.arange(len(labels), dtype=np.uint8).reshape(-1, 1, 1, 1)
    return Split(pixels, np.array(labels, dtype=np.int32))


def data_set(
    train: int = 16, test: Sequence[int] = (0, 1), validation: Sequence[int] | None = None
) -> DataSet:
    """A data set of a few images.

    Args:
        train: how many to train on.
        test: the labels of those to test with.
        validation: the labels of those to validate with; None for none of its own.
    """
    tested = split(test)
    return DataSet(
        name="mnist",
        source="real",
        origin="mnist.npz",
        train=split([i % 2 for i in range(train)]),
        validation=tested if validation is None else split(validation),
        test=tested,
        validation_is_test=validation is None,
        digest="0123456789abcdef",
    )


#: As the data set of :func:`data_set` was found.
FOUND = Found("mnist", "real", "mnist.npz", (), 16)


KINDS = {Step: StepCase, Loading: LoaderCase, Saving: CheckpointCase, Restoring: CheckpointCase}
THREE_EPOCHS = Schedule(3)


def case(
    framework: Trainer | None = None,
    workload: Any = mlp,
    schedule: Schedule = THREE_EPOCHS,
    toggles: tuple[tuple[str, str], ...] = (),
    tell: Callable[[Any], Any] = lambda _: None,
    device: str = "cpu",
    execution: str = "eager",
    dtype: str = "float32",
    **settings: Any,
) -> Any:
    """A case of a training loop or a part of one: batches of eight, two of them an epoch."""
    tested_cell = cell(
        workload,
        size=8,
        direction="train",
        schedule=schedule,
        data=None if isinstance(workload, Step) else FOUND,
        toggles=toggles,
        device=device,
        execution=execution,
        dtype=dtype,
    )
    kind = KINDS.get(type(workload), LoopCase)
    return case_of(tested_cell, framework or Trainer(), kind=kind, tell=tell, **settings)


def measured(*arguments: Any, **more: Any) -> dict[str, Any]:
    """Measure a case, as :func:`case` makes it, and return its record."""
    return recorded(case(*arguments, **more))


loops_and_steps = pytest.mark.parametrize(
    "workload", [mlp, mlp.step], ids=lambda workload: str(workload.name)
)
