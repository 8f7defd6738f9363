"""Epochs are trained, timed and told apart: only what trains is in a round, to the digit."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.epochs import Alone, Epoch, Epochs, steps_of, whole
from fwbench.errors import Diverged, WrongTraining
from fwbench.frameworks.learner import Job
from fwbench.measure import resources
from fwbench.measure.clock import Clock
from fwbench.measure.nvml import Gpu
from fwbench.terms.presets import Schedule
from fwbench.workloads import mlp, sentiment_lstm
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.training import Training, order
from support.fake_learner import FakeLearner, Trainer, answering, data_set
from support.fake_nvml import Card, FakeNvml
from support.tables import tabled

STEP_S = 2.0**-4
#: The loss of an answer that is undecided between ten classes.
LN10 = math.log(10.0)
#: Of four steps, where calls return at once.
EPOCH_S = 4 * STEP_S


class Trained:
    """A training as pytest-benchmark drives it: four batches of four images an epoch.

    Attributes:
        epochs: the object under test.
        learner: what it trained.
        rounds_s: what pytest-benchmark would have measured.
        reported: epochs and their numbers of steps, as they were reported.
    """

    def __init__(
        self,
        schedule: Schedule,
        framework: Trainer | None = None,
        data: DataSet | None = None,
        training: Training = mlp,
        device: str = "cpu",
        execution: str = "eager",
        decay: bool = False,
        enabled: bool = True,
        gpu: Gpu | None = None,
    ) -> None:
        self.framework = framework or Trainer(dispatch_s=0.0)
        self.schedule = schedule
        self.enabled = enabled
        self.rounds_s: list[float] = []
        self.reported: list[tuple[Epoch, int]] = []
        self.learner: FakeLearner = self.framework.learner(
            Job(training, device, execution, "float32", batch=4)
        )
        self.clock = Clock(self.framework.clock, self.framework.waiter(device))
        data = data or data_set()
        self.epochs = Epochs(
            Alone(self.learner, data, steps_of(schedule, data, 4), self.clock, 2),
            data,
            schedule,
            self.clock,
            gpu,
            decay=decay,
            timed_s=lambda: self.rounds_s,
            tell=lambda epoch, steps: self.reported.append((epoch, steps)),
        )

    def train(self) -> "Trained":
        rounds = (self.schedule.epochs - self.schedule.warmup_epochs) * self.schedule.repetitions
        for _ in range(rounds if self.enabled else 1):
            self.epochs.prepare()
            start = self.clock()
            self.epochs.round()
            if self.enabled:
                self.rounds_s.append(self.clock() - start)
        self.epochs.finish()
        return self

    def all(self, what: str) -> list[Any]:
        return [getattr(epoch, what) for epoch in self.epochs.epochs]


def trained(epochs: int = 2, warmup_epochs: int = 1, **more: Any) -> Trained:
    """A training that is over.

    Args:
        more: repetitions, steps, and what :class:`Trained` takes.
    """
    rest = {name: more.pop(name) for name in ("repetitions", "steps") if name in more}
    return Trained(Schedule(epochs, warmup_epochs, **rest), **more).train()


# Rounds


@pytest.mark.parametrize("warmup_epochs", [0, 1, 3])
def test_each_epoch_has_the_seconds_of_its_own_round(warmup_epochs: int) -> None:
    """Warm-up epochs are in no round, and recorded as well."""
    slower = Trainer(dispatch_s=0.0, step_s=lambda step: 2.0 ** (step // 4))
    training = trained(4, warmup_epochs, repetitions=2, framework=slower)
    seconds = [4.0, 8.0, 16.0, 32.0]
    assert training.rounds_s == seconds[warmup_epochs:] * 2
    assert training.all("seconds") == seconds * 2
    assert training.all("warmup") == [epoch <= warmup_epochs for epoch in (1, 2, 3, 4)] * 2
    assert training.all("repetition") == [1] * 4 + [2] * 4
    assert training.all("epoch") == [1, 2, 3, 4] * 2
    assert len(training.learner.events_of("epoch")) == 8


def test_a_round_ends_when_its_last_update_is_done() -> None:
    """Steps that return early are waited for, in warm-up epochs too."""
    training = trained(framework=Trainer(dispatch_s=2.0**-10))
    assert training.all("seconds") == [2.0**-10 + EPOCH_S] * 2


def test_nothing_but_training_is_in_a_round() -> None:
    """Neither validation, nor tests, nor going back to the initial weights."""
    busy = Trainer(dispatch_s=0.0, logits_s=2.0, reset_s=16.0)
    training = trained(epochs=5, repetitions=2, framework=busy, data=data_set(validation=[0] * 9))
    assert training.rounds_s == [EPOCH_S] * 8
    assert training.all("seconds") == [EPOCH_S] * 10
    # Three batches of the validation part; one of the test part, which is not counted here.
    assert training.all("validation_s") == [6.0] * 10
    assert training.learner.events_of("logits") == ([[4], [4], [1]] * 5 + [[2]]) * 2


def test_where_nothing_is_timed_the_epoch_is_trained_all_the_same() -> None:
    """With --benchmark-disable there are no seconds, and shares of none."""
    training = trained(epochs=1, warmup_epochs=0, enabled=False)
    (epoch,) = training.epochs.epochs
    assert (epoch.seconds, epoch.cpu_utilization) == (0.0, 0.0)
    assert (epoch.train_loss, epoch.test_accuracy) == (pytest.approx(LN10), 0.5)


def test_an_epoch_for_a_profile_is_not_kept() -> None:
    """With --benchmark-cprofile pytest-benchmark trains on when all is over, as often as asked."""
    training = trained(epochs=3, repetitions=2)
    reported, epochs = [*training.reported], [*training.epochs.epochs]
    training.epochs.prepare()
    for _ in range(2):
        training.epochs.round()
    training.epochs.finish()
    assert len(training.learner.events_of("epoch")) == 6 + 2
    assert training.epochs.epochs == epochs
    assert training.reported == reported


def test_every_epoch_is_reported_when_it_is_over() -> None:
    """With the number of its steps, before the next one begins."""
    training = Trained(Schedule(3))
    heard: list[int] = []
    training.epochs._tell = lambda *_: heard.append(len(training.learner.events_of("epoch")))
    training.train()
    assert heard == [1, 2, 3]
    training = trained(epochs=3, steps=2)
    assert training.reported == [(epoch, 2) for epoch in training.epochs.epochs]


# Repetitions and order


def test_every_repetition_begins_at_the_initial_weights() -> None:
    training = trained(epochs=3, repetitions=2)
    begun = [event for event in training.learner.events if event[0] in ("reset", "epoch")]
    assert begun == [("reset", False), *[("epoch",)] * 3] * 2


def test_every_epoch_has_an_order_of_its_own() -> None:
    orders = trained(epochs=3, repetitions=2).learner.events_of("order")
    assert orders == [order(16, r, e).tolist() for r in range(2) for e in range(3)]
    assert len({*map(tuple, orders)}) == 6
    assert trained(epochs=3, repetitions=2).learner.events_of("order") == orders


def test_an_epoch_visits_as_many_examples_as_whole_batches_need() -> None:
    """With a limit of steps, or a rest that makes no batch, it is the beginning of the order."""
    limited = trained(steps=2)
    assert limited.learner.events_of("order") == [order(16, 0, e)[:8].tolist() for e in range(2)]
    rest = trained(data=data_set(train=15))
    assert rest.learner.events_of("order") == [order(15, 0, e)[:12].tolist() for e in range(2)]
    assert (limited.epochs.steps, rest.epochs.steps) == (2, 3)
    assert (limited.learner.steps, rest.learner.steps) == (2 * 2, 2 * 3)


@tabled
def test_steps_are_whole_batches(train: int, steps: int | None, expected: int) -> None:
    assert steps_of(Schedule(1, steps=steps), data_set(train), 4) == expected


def test_images_are_learned_from_as_float32_from_0_to_1() -> None:
    """Tokens stay integers."""
    pixels = Split(np.array([0, 51, 255], dtype=np.uint8), np.zeros(3, np.int32))
    examples, labels = whole(pixels)
    assert (examples.dtype, examples.tolist()) == (np.float32, [0.0, np.float32(0.2), 1.0])
    assert labels is pixels.y
    tokens = Split(np.array([[0, 4_999]], dtype=np.int32), np.zeros(1, np.int32))
    assert whole(tokens) == (tokens.x, tokens.y)


# Learning rate


def test_the_learning_rate_falls_each_ten_epochs() -> None:
    """To 0.9 of itself; a repetition begins with the whole one again. Without decay it is left."""
    rates = trained(epochs=21, repetitions=2, decay=True).learner.events_of("rate")
    begin = mlp.optimizer.learning_rate
    falling = [*[begin] * 10, *[begin * 0.9] * 10, begin * 0.9 * 0.9]
    assert [rate for (rate,) in rates] == pytest.approx(falling * 2, rel=1e-12)
    assert trained(epochs=21).learner.events_of("rate") == []


# Losses


def test_the_train_loss_is_the_mean_of_its_steps() -> None:
    training = trained(epochs=3, framework=Trainer(loss_of=lambda step: 2.0**-step))
    assert training.all("train_loss") == [(1 + 1 / 2 + 1 / 4 + 1 / 8) / 4 / 16**e for e in range(3)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("epoch", [1, 2, 3], ids=["warm-up", "a round", "the last round"])
def test_a_loss_that_is_no_number_ends_the_training(value: float, epoch: int) -> None:
    first = 4 * (epoch - 1) + 2
    training = Trained(Schedule(3), Trainer(loss_of=lambda step: value if step >= first else 1.0))
    with pytest.raises(Diverged) as caught:
        training.train()
    assert str(caught.value).startswith(
        f"the loss became {value} at step 3 of 4 in epoch {epoch}: training has diverged"
    )
    assert len(training.epochs.epochs) == len(training.reported) == epoch - 1


def test_the_curve_of_an_epoch_is_kept_by_tenths() -> None:
    """The mean of each tenth of its steps; of fewer than ten steps, each."""
    data = data_set(train=80)
    training = trained(data=data, framework=Trainer(loss_of=lambda step: float(step % 20)))
    assert training.all("train_losses") == [[2 * tenth + 0.5 for tenth in range(10)]] * 2
    few = trained(framework=Trainer(loss_of=lambda step: float(step % 4)))
    assert few.all("train_losses") == [[0.0, 1.0, 2.0, 3.0]] * 2


def test_an_epoch_has_a_loss_for_each_of_its_batches() -> None:
    class Short(FakeLearner):
        def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
            return super().losses(losses)[:-1]

    training = Trained(Schedule(2), Trainer(kind=Short))
    with pytest.raises(WrongTraining, match="4 batches were to be trained on, and the learner"):
        training.train()


# Evaluation

LN3 = math.log(3.0)


@pytest.mark.parametrize(
    ("answers", "labels", "losses", "accuracy"),
    [
        # Softmax of (ln 3, 0) is (3/4, 1/4); the first of equal logits is the answer.
        (
            [(LN3, 0.0), (LN3, 0.0), (0.0, 0.0), (0.0, LN3)],
            [0, 1, 0, 1],
            [math.log(4 / 3), math.log(4), math.log(2), math.log(4 / 3)],
            0.75,
        ),
        # Differences count, also of large logits in float32, also below zero.
        (
            [(1e4, 0.0), (1e4, 1e4 - LN3), (-1e4, -1e4), (0.0, 30.0)],
            [0, 1, 0, 0],
            [0.0, math.log(4), math.log(2), 30.0],
            0.5,
        ),
        # Of a shorter last batch each example counts as much as others.
        ([(LN3, 0.0)], [0, 0, 0, 0, 1], [*[math.log(4 / 3)] * 4, math.log(4)], 0.8),
    ],
    ids=["by hand", "large logits", "shorter last batch"],
)
def test_loss_and_accuracy(
    answers: Any, labels: list[int], losses: list[float], accuracy: float
) -> None:
    framework = Trainer(answers=answering(*answers))
    training = trained(framework=framework, data=data_set(test=labels))
    loss = pytest.approx(sum(losses) / len(losses), rel=1e-9)
    assert training.all("validation_loss") == [loss] * 2
    assert training.all("validation_accuracy") == [accuracy] * 2


def test_evaluation_looks_at_no_more_examples_than_an_epoch_trains_on() -> None:
    """With a limit of steps both parts are as limited; the rest of the last batch is left out."""
    answers = answering((LN3, 0.0))
    data = data_set(test=[0] * 8 + [1] * 8, validation=[0] * 4 + [1] * 3)
    training = trained(framework=Trainer(answers=answers), data=data, steps=1)
    assert training.learner.events_of("logits") == [[4], [4], [4]]
    assert training.all("validation_accuracy") == [1.0, 1.0]
    assert training.all("test_accuracy") == [None, 1.0]
    two = trained(framework=Trainer(answers=answers), data=data, steps=2)
    assert two.learner.events_of("logits") == [[4], [3]] * 2 + [[4], [4]]
    assert two.all("validation_accuracy") == [4 / 7] * 2
    facts = two.epochs.facts()
    assert (facts["tested_examples"], facts["validated_examples"]) == (8, 7)


def test_whole_epochs_are_evaluated_on_all_examples() -> None:
    """Also on more than they train on: 12 of 15 examples in whole batches, and 13 to test on."""
    answers = answering((LN3, 0.0))
    data = data_set(train=15, test=[0] * 12 + [1])
    for steps in ({}, {"steps": 3}):
        training = trained(framework=Trainer(answers=answers), data=data, **steps)
        assert training.learner.events_of("logits") == [[4], [4], [4], [1]] * 2
        assert training.all("test_accuracy") == [None, 12 / 13]
        facts = training.epochs.facts()
        assert (facts["tested_examples"], facts["validated_examples"]) == (13, 13)


@pytest.mark.parametrize(
    ("epochs", "tested"), [(3, [3]), (5, [5]), (7, [5, 7]), (16, [5, 10, 15, 16])]
)
def test_the_test_accuracy_is_known_at_milestones_and_at_the_end(
    epochs: int, tested: list[int]
) -> None:
    answers = answering((LN3, 0.0))
    data = data_set(test=[0, 0, 1], validation=[1])
    training = trained(epochs, repetitions=2, framework=Trainer(answers=answers), data=data)
    known = [e for e in training.epochs.epochs if e.test_accuracy is not None]
    assert [(e.repetition, e.epoch) for e in known] == [(r, e) for r in (1, 2) for e in tested]
    assert {e.test_accuracy for e in known} == {2 / 3}
    assert len(training.learner.events_of("logits")) == 2 * (epochs + len(tested))
    assert training.epochs.facts()["test_accuracy"] == [
        {"repetition": r, "epoch": e, "accuracy": 2 / 3} for r in (1, 2) for e in tested
    ]


def test_where_validation_is_the_test_it_is_made_once() -> None:
    answers = answering((LN3, 0.0))
    training = trained(epochs=3, framework=Trainer(answers=answers), data=data_set(test=[0, 0, 1]))
    assert training.all("validation_accuracy") == [2 / 3] * 3
    assert training.all("test_accuracy") == [None, None, 2 / 3]
    assert len(training.learner.events_of("logits")) == 3


# Facts


def test_facts_are_right_to_the_digit() -> None:
    """Medians over the rounds alone; sums over all epochs of a repetition, without validation."""
    per_step_s = [2.0**-1, 2.0**-4, 2.0**-5, 2.0**-3]
    framework = Trainer(dispatch_s=0.0, logits_s=4.0, step_s=lambda step: per_step_s[step // 4])
    facts = trained(epochs=4, repetitions=2, framework=framework).epochs.facts()
    # Rounds of 1/4, 1/8 and 1/2 s after a warm-up epoch of 2 s, twice.
    assert facts["epoch_s"] == 2.0**-2
    assert facts["step_s"] == 2.0**-4
    assert facts["first_epoch_excess"] == 7.0
    assert facts["total_s"] == [2.875, 2.875]
    assert facts["images_per_s"] == 64.0
    assert facts["steps_per_epoch"] == 4
    assert "tokens_per_s" not in facts


def test_texts_count_by_their_tokens() -> None:
    part = Split(np.ones((16, 500), np.int32), np.zeros(16, np.int32))
    data = DataSet("imdb", "real", "imdb.npz", part, part, part, True, "0")
    facts = trained(training=sentiment_lstm, data=data).epochs.facts()
    assert facts["tokens_per_s"] == 16 * 500 / EPOCH_S
    assert "images_per_s" not in facts


def test_without_a_warm_up_epoch_the_first_is_in_the_median() -> None:
    framework = Trainer(dispatch_s=0.0, step_s=lambda step: 1.0 if step < 4 else STEP_S)
    facts = trained(3, 0, framework=framework).epochs.facts()
    assert (facts["epoch_s"], facts["first_epoch_excess"]) == (EPOCH_S, 15.0)


def test_every_epoch_is_among_the_facts() -> None:
    (first, second) = trained().epochs.facts()["epochs"]
    assert first == {
        "repetition": 1,
        "epoch": 1,
        "warmup": True,
        "seconds": EPOCH_S,
        "train_loss": pytest.approx(LN10),
        "train_losses": [pytest.approx(LN10)] * 4,
        "validation_loss": pytest.approx(LN10),
        "validation_accuracy": 0.5,
        "validation_s": 0.0,
        "cpu_utilization": first["cpu_utilization"],
        "gpu": None,
        "test_accuracy": None,
    }
    assert (second["epoch"], second["warmup"], second["test_accuracy"]) == (2, False, 0.5)


def test_utilization_is_that_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """The busy share of both threads while an epoch trains, not while weights are reset or tested.

    Here one and a half processors are always busy.
    """
    framework = Trainer(dispatch_s=0.0, logits_s=2.0, reset_s=2.0)
    busy = SimpleNamespace(process_time=lambda: 1.5 * framework.clock.now_s)
    monkeypatch.setattr(resources, "time", busy)
    assert trained(epochs=3, framework=framework).all("cpu_utilization") == [0.75] * 3


def test_the_utilization_of_a_case_is_that_of_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The median, which a compilation in the first epoch does not change."""
    read = [0.0, 0.5, 1.0, 1.375, 2.0, 2.125, 3.0, 3.25]  # before and after each epoch of 1/4 s
    busy = SimpleNamespace(process_time=Mock(side_effect=read))
    monkeypatch.setattr(resources, "time", busy)
    training = trained(epochs=4)
    assert training.all("cpu_utilization") == [1.0, 0.75, 0.25, 0.5]
    assert training.epochs.facts()["cpu_utilization"] == 0.5


def test_the_use_of_the_gpu_is_kept_with_each_epoch() -> None:
    framework = Trainer(dispatch_s=2.0)
    card = Card("GPU-a", busy=50, used_bytes=1, energy_mj=lambda: int(1e5 * framework.clock()))
    training = trained(3, framework=framework, device="gpu:0", gpu=Gpu(FakeNvml(card), card))
    facts = training.epochs.facts()
    _, *timed = (epoch["gpu"] for epoch in facts["epochs"])
    energies_j = [gpu["energy_j"] for gpu in timed]
    assert energies_j == pytest.approx([100 * each_s for each_s in training.rounds_s], abs=0.01)
    assert facts["energy_j"] == pytest.approx(100 * training.rounds_s[0], abs=0.01)
    uncertain = [0.1 / each_s for each_s in training.rounds_s]
    assert [gpu["energy_uncertainty"] for gpu in timed] == pytest.approx(uncertain, rel=0.01)
    assert facts["energy_uncertainty"] == pytest.approx(max(uncertain), rel=0.01)
    assert {(gpu["utilization"], gpu["memory_bytes"]) for gpu in timed} == {(0.5, 1)}
