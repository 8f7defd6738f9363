"""What is not everyone's training is never timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fwbench.cases import verify
from fwbench.errors import Diverged, WrongTraining
from fwbench.frameworks.learner import Job
from fwbench.terms.presets import Schedule
from fwbench.workloads import mlp, sentiment_lstm
from fwbench.workloads.models import trajectories
from fwbench.workloads.training import CHECKED_STEPS, order
from support.fake_learner import (
    Trainer,
    assert_untouched,
    case,
    loops_and_steps,
    measured,
    right_losses,
)

pytestmark = pytest.mark.usefixtures("load")

#: What verifies alone trains on, see test_session.py.
VERIFYING = Schedule(epochs=1, warmup_epochs=0, steps=2)


def off_by(error: float, step: int) -> Callable[[Job], Sequence[float]]:
    """Losses that are everyone's but for one."""

    def losses(job: Job) -> list[float]:
        found = [*right_losses(job)]
        found[step - 1] += error
        return found

    return losses


# The check


WRONG = [
    ({"too_many": 1}, "trains 109387 parameters, and its description has 109386"),
    ({"check_losses": off_by(1e-3, 1)}, "at step 1 the loss is"),
    ({"check_losses": off_by(-1e-4, 4)}, "at step 4 the loss is"),
    ({"check_losses": off_by(math.nan, 2)}, "at step 2 the loss is nan"),
    ({"check_losses": off_by(math.inf, 10)}, "at step 10 the loss is inf"),
]


@loops_and_steps
@pytest.mark.parametrize(
    ("wrong", "message"),
    WRONG,
    ids=["parameters", "first loss", "a later loss", "NaN", "infinite"],
)
def test_what_is_not_everyones_training_is_never_timed(
    of: Any, wrong: dict[str, Any], message: str
) -> None:
    """Another model or other losses fail the case before its first epoch or its warm-up."""
    framework = Trainer(**wrong)
    one = case(framework, of)
    with pytest.raises(WrongTraining, match=message):
        one.measure()
    (learner,) = framework.learners
    assert learner.of("epoch") == []
    assert learner.steps <= CHECKED_STEPS
    assert_untouched(one)


@loops_and_steps
def test_what_the_check_found_is_in_the_record(of: Any) -> None:
    """How far the losses were off, what was allowed, how many there were, and the optimiser."""
    noted = {"epsilon": "inside"}
    facts = measured(Trainer(check_losses=off_by(2.0**-17, 3), noted=noted), of)
    expected = {
        "parameters": 109_386,
        "checked_steps": CHECKED_STEPS,
        "max_loss_deviation": pytest.approx(2.0**-17, rel=1e-9),
        "loss_tolerance": verify.LOSS_TOLERANCES["float32"],
        "optimizer": {
            "name": "Adam",
            "learning_rate": 1e-3,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": "inside",
        },
    }
    assert {name: facts[name] for name in expected} == expected


def test_the_same_losses_deviate_by_nothing() -> None:
    """The check has no error of its own."""
    assert measured()["max_loss_deviation"] == 0.0


def test_the_optimizers_constants_are_in_the_record() -> None:
    """What a framework does not say differently is what the workload says."""
    assert measured()["optimizer"] == {"name": "Adam", **vars(mlp.optimizer)}


def test_each_dtype_has_its_tolerance() -> None:
    """What float32 may be off by is wrong in float64."""
    one = case(Trainer(check_losses=off_by(1e-6, 1)), dtype="float64")
    with pytest.raises(WrongTraining, match=r"1e-08 is allowed"):
        one.measure()


@pytest.mark.parametrize("update", ["lazy", "dense"])
def test_lazy_updates_have_losses_of_their_own(update: str) -> None:
    """What a framework says of its updates decides what it is compared with."""
    lazy = Trainer(
        noted={"update": update},
        check_losses=lambda job: trajectories.expected_losses(job.training, job.batch, lazy=True),
    )
    one = case(lazy, sentiment_lstm.step)
    if update == "lazy":
        one.measure()
    else:
        with pytest.raises(WrongTraining):
            one.measure()


def test_the_check_trains_as_described_and_then_the_framework_as_it_does() -> None:
    """Exactly placed constants and no dropout for the checks, and neither for what is timed."""
    framework = Trainer()
    case(framework).measure()
    (learner,) = framework.learners
    begun = [event for event in learner.events if event[0] in ("reset", "epoch")]
    assert begun[:4] == [("reset", True), ("reset", False), ("reset", False), ("epoch",)]
    timed = begun[4:-3]
    assert {*timed} == {("epoch",)}
    assert begun[-3:] == [("reset", True), ("epoch",), ("reset", False)]


# With --benchmark-disable


def test_where_nothing_is_timed_a_few_steps_are_checked_and_an_epoch_is_trained() -> None:
    """Three steps of the check, two of training, one evaluation, and no record."""
    framework = Trainer()
    heard: list[Any] = []
    one = case(framework, schedule=VERIFYING, disabled=True, tell=heard.append)
    one.measure()
    assert len(framework.called) == 3 + 2
    (learner,) = framework.learners
    assert len(learner.of("epoch")) == 1
    assert learner.of("order") == [order(16, 0, 0)[:16].tolist()]
    assert one.benchmark.stats is None
    assert one.benchmark.extra_info == {}
    assert [(epoch["epochs"], epoch["rate"]) for epoch in heard] == [(1, 0.0)]


def test_where_nothing_is_timed_a_step_is_checked_as_much() -> None:
    """Three steps of the check, beside the call that is verified and pytest-benchmark's."""
    framework = Trainer()
    one = case(framework, mlp.step, disabled=True)
    one.measure()
    assert len(framework.called) == 1 + 3 + 1
    assert one.benchmark.extra_info == {}


@loops_and_steps
def test_where_nothing_is_timed_what_is_wrong_fails_all_the_same(of: Any) -> None:
    """In the first three steps; later ones are looked at when it is timed."""
    late = Trainer(check_losses=off_by(1e-2, 4))
    case(late, of, schedule=VERIFYING, disabled=True).measure()
    with pytest.raises(WrongTraining, match="at step 3"):
        case(Trainer(check_losses=off_by(1e-2, 3)), of, schedule=VERIFYING, disabled=True).measure()


def test_where_nothing_is_timed_divergence_fails_all_the_same() -> None:
    """In the one epoch that is trained."""
    one = case(Trainer(loss_of=lambda _: math.nan), schedule=VERIFYING, disabled=True)
    with pytest.raises(Diverged):
        one.measure()
