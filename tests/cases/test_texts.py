"""Loops over a text, whose examples have a label for each token: losses, batches, rates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fwbench.cases import training
from fwbench.cases.epochs import steps_of
from fwbench.errors import DataError, WrongResult, WrongTraining
from fwbench.terms.presets import Schedule
from fwbench.workloads import word_lm
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import LSTM, Dense, Embedding, Tokens
from support.fake_learner import Trainer, case, data_set, measured
from support.fakes import fails

LENGTH = 5
WORDS = replace(
    word_lm,
    name="words",
    network=sequential(Embedding(3, 2), LSTM(2, sequences=True), Tokens(), Dense(3, relu=False)),
    shape=(LENGTH,),
    classes=3,
)


def text(examples: int) -> Split:
    """Tokens, and a label for each."""
    tokens = np.random.default_rng(examples).integers(0, 3, (2, examples, LENGTH), dtype=np.int32)
    return Split(*tokens)


TRAIN, TEST = text(16), text(11)


@pytest.fixture(autouse=True)
def _load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text in memory."""
    found = DataSet("text", "real", "text.txt", TRAIN, TEST, TEST, True, "0123456789abcdef")
    monkeypatch.setattr(training, "read", lambda *_: found)


def answers(examples: Any) -> Any:
    """A row for each token: each is twice as likely followed by a 0 as by any other."""
    return np.tile(np.log([2.0, 1.0, 1.0]), (examples.size, 1))


def framework(**changes: Any) -> Trainer:
    """As the real ones, it has the labels of a batch one after the other."""
    given: dict[str, Any] = {
        "answers": answers,
        "loads": lambda batch: (batch[0], batch[1].ravel()),
        "asynchronous": False,
        "dispatch_s": 0.0,
        "step_s": lambda _: 0.5,
        "load_s": 0.125,
    }
    return Trainer(**given | changes)


def test_each_token_is_answered_for() -> None:
    """Loss and accuracy are means over all tokens, those of the last, shorter batch included."""
    facts = measured(framework(), of=WORDS)
    zeros = np.mean(TEST.y == 0)
    last = facts["epochs"][-1]
    assert last["validation_accuracy"] == pytest.approx(zeros)
    assert last["validation_loss"] == pytest.approx(math.log(4.0) - zeros * math.log(2.0))
    counts = ("train", "test")
    assert [facts["data"][part] for part in counts] == [16, 11]
    assert (facts["validated_examples"], facts["tested_examples"]) == (11, 11)
    assert facts["tokens_per_s"] == 8 * LENGTH / (0.5 + 0.125)
    assert facts["checked_steps_timed"] > 0


def test_a_loader_gives_the_labels_of_each_example_in_order() -> None:
    """Those of an example one after the other, as the loss takes them; others are refused."""
    assert measured(framework(), of=WORDS.loader)["steps_per_epoch"] == 2
    by_place = framework(loads=lambda batch: (batch[0], batch[1].T.ravel()))
    fails(case(by_place, of=WORDS.loader), WrongResult, "the loader's last batch does not hold")


def test_answers_to_other_labels_fail_after_the_timing() -> None:
    """A step that reads the labels place by place has another loss than the answers."""
    by_place = framework(loads=lambda batch: (batch[0], np.roll(batch[1].ravel(), 1) * 0))
    fails(case(by_place, of=WORDS), WrongTraining, "after the timing, a step does not train on its")


def test_a_batch_that_the_data_turns_out_not_to_have_is_refused() -> None:
    """Only reading a text tells how long it is."""
    said = r"a batch of 17 is larger than the 16 training examples of mnist \(mnist\.npz\); give"
    with pytest.raises(DataError, match=said):
        steps_of(Schedule(1), data_set(16), 17)
