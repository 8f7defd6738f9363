"""A learner that trains less than it should gets no number, whenever it begins to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.learning import LOSSES_TIMED, UPDATES_TIMED
from fwbench.errors import WrongTraining
from fwbench.frameworks.learner import Placed
from fwbench.plugin import host
from fwbench.workloads import cifar_cnn, mlp
from fwbench.workloads.training import CHECKED_STEPS
from support.fake_learner import FakeLearner, Trainer, case, loops_and_steps, measured

pytestmark = pytest.mark.usefixtures("load")


class Liar(Trainer):
    """A framework whose learners are of one class."""

    def __init__(self, kind: type[FakeLearner], **settings: Any) -> None:
        super().__init__(**settings)
        self.kind = kind

    def learner(self, job: Any) -> FakeLearner:
        """Of the class that was given."""
        self.learners.append(self.kind(job, self))
        return self.learners[-1]


def by_first_label(examples: NDArray[Any]) -> NDArray[Any]:
    """Logits that differ from example to example, so that parts of a batch have other losses."""
    first = examples.reshape(len(examples), -1)[:, :1]
    return np.asarray(np.linspace(0.0, 3.0, 10) * np.sin(1000 * first))


def refused(framework: Trainer, of: Any, message: str) -> None:
    """Measuring raises one sentence, and leaves no record."""
    one = case(framework, of)
    with pytest.raises(WrongTraining, match=message) as caught:
        one.measure()
    assert len(re.findall(r"\.\s", str(caught.value))) <= 1
    assert host.record(one.benchmark) is None
    assert one.benchmark.extra_info == {}


# Updates


@loops_and_steps
def test_a_step_that_leaves_the_weights_is_found_before_the_timing(of: Any) -> None:
    """Whatever losses it returns."""
    every_second = Trainer(updates=lambda step: step % 2 == 0)
    refused(every_second, of, "^an update is missing: step 2 left all weights as they were")
    assert len(every_second.called) <= 1 + 2


@loops_and_steps
@pytest.mark.parametrize("each", [1, 2, 3])
def test_updates_that_are_left_out_once_steps_repeat_are_found(of: Any, each: int) -> None:
    """All of them, every second or third: the weights are watched after the timing."""

    class Later(FakeLearner):
        made = 0

        def step(self, examples: Any, labels: Any) -> Any:
            loss = super().step(examples, labels)
            self.made += 1
            if self.made > CHECKED_STEPS + 1 and self.made % each == 0:
                self.updates -= 1
            return loss

    refused(Liar(Later), of, "^after the timing, an update is missing: step [1-3] left all")


def test_updates_that_an_epoch_leaves_out_are_found() -> None:
    """Its first step is honest, so epochs of one batch do not show it; its losses do."""

    class InEpochs(FakeLearner):
        def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
            losses = []
            for number, batch in enumerate(batches):
                losses.append(self.step(*batch))
                self.steps -= number % 2  # as if that one had not been
            return losses

    refused(Liar(InEpochs), mlp, "^after the timing, this is not the same training: at step 3 ")


def test_an_epoch_that_leaves_out_batches_is_found() -> None:
    """It has fewer losses than it was given batches."""

    class Half(FakeLearner):
        def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
            return super().epoch([*batches][::2])

    refused(Liar(Half), mlp, "^2 batches were to be trained on, and the learner returned 1 losses")


# Losses


def part(of: Callable[[Any], Any], begins: Callable[[FakeLearner, int], bool]) -> Liar:
    """A framework that trains on a part of each batch from some step on.

    Args:
        begins: whether it does, by the learner and how many steps it has made.
    """

    class Part(FakeLearner):
        made = 0

        def step(self, examples: Any, labels: Any) -> Any:
            self.made += 1
            some = begins(self, self.made)
            return super().step(*((of(examples), of(labels)) if some else (examples, labels)))

    return Liar(Part, answers=by_first_label)


@loops_and_steps
def test_a_step_on_a_part_of_its_batch_is_found_after_the_timing(of: Any) -> None:
    """Its loss is not that of the model's answers to the whole batch."""
    framework = part(lambda x: x[: len(x) // 2], lambda _, made: made > CHECKED_STEPS + 1)
    refused(framework, of, "^after the timing, a step does not train on its whole batch: the loss")


@loops_and_steps
def test_steps_that_are_honest_until_the_third_are_found(of: Any) -> None:
    """After every reset; the losses of the check then are another training's."""
    framework = Trainer(
        check_losses=lambda job: [*right(job)[:2], *(2 * loss for loss in right(job)[2:])]
    )
    refused(framework, of, "^this is not the same training: at step 3 ")


@loops_and_steps
def test_other_losses_after_the_timing_are_found(of: Any) -> None:
    """What was right in the first check is compared once more."""

    class Worse(FakeLearner):
        resets = 0

        def reset(self, *, exact: bool) -> None:
            super().reset(exact=exact)
            self.resets += exact

        def step(self, examples: Any, labels: Any) -> Any:
            loss = super().step(examples, labels)
            return loss + (self._exact and self.resets == 2 and self.steps == 3)

    refused(Liar(Worse), of, "^after the timing, this is not the same training: at step 3 the loss")


def test_with_dropout_answers_are_not_compared() -> None:
    """They are another network's; what is left are updates and first losses."""
    of = cifar_cnn.step
    facts = measured(Trainer(loss_of=lambda _: 1.0), of)
    assert facts["checked_updates_timed"] == UPDATES_TIMED
    every_second = part(lambda x: x, lambda *_: False)
    every_second.updates = lambda step: step < CHECKED_STEPS or step % 2 == 0
    refused(every_second, of, "^after the timing, an update is missing")


def right(job: Any) -> list[float]:
    """The losses of the check."""
    return [*Trainer().check_losses(job)]


# Honest learners


@loops_and_steps
def test_the_record_says_what_was_checked(of: Any) -> None:
    """Losses and updates, before the timing and after it."""
    facts = measured(part(lambda x: x, lambda *_: False), of)
    assert (facts["checked_steps"], facts["checked_updates"]) == (CHECKED_STEPS, CHECKED_STEPS)
    assert facts["checked_steps_timed"] == LOSSES_TIMED
    assert facts["checked_updates_timed"] == UPDATES_TIMED


def test_checks_after_the_timing_are_in_no_time() -> None:
    """Epochs, rounds and sums are those of the training alone."""
    framework = Trainer()
    facts = measured(framework)
    assert len(facts["epochs"]) == 3
    assert facts["total_s"] == [sum(epoch["seconds"] for epoch in facts["epochs"])]
    (learner,) = framework.learners
    assert len(learner.of("epoch")) == 3 + UPDATES_TIMED + 1
