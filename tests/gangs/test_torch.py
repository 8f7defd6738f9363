"""PyTorch's replicas train as one worker does; each way not to is found before any timing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from fwbench.errors import VerificationError, WrongGradient, WrongTraining
from fwbench.gangs import checks
from fwbench.gangs.gang import Gang
from fwbench.gangs.shares import Task
from fwbench.workloads import COLLECTIVES, lenet, mlp
from fwbench.workloads.collectives import Collective
from fwbench.workloads.models import trajectories
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.training import Training
from support.gangs import LANGUAGE_MODELS, installed, started, trains_as_one

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 120.0

#: Which 2 and 3 replicas share evenly, in shares of none of the mistakes.
_SHARED_BATCH = 120


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gang]:
    """Two replicas whose mistakes depend on their batch, started once."""
    folder = tmp_path_factory.mktemp("installed")
    installed(folder, "cheating", "support.cheating_torch:CheatingTorch")
    with pytest.MonkeyPatch.context() as patch:
        path = [str(folder), str(_TESTS), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        made = started(2, "cheating")
    yield made
    made.close()


def _judged(gang: Gang, batch: int, training: Training = lenet) -> checks.Answers:
    """The results of all replicas in training on a global batch, once it was judged."""
    task = asdict(Task(training.step.name, batch, "cpu", "eager", "float32", sparse=False))
    gang.ask("bind", task, limit_s=_PATIENCE_S, doing="building")
    answers = gang.ask("check", 10, limit_s=_PATIENCE_S, doing="checking")
    checks.training(answers, training, batch, "float32", "before the timing")
    return answers


def test_two_replicas_train_as_one_worker(gang: Gang) -> None:
    """The same losses, gradients and weights, and as many bytes as the gradients have."""
    answers = _judged(gang, 80)
    first = answers[0]
    assert first["gradient_error"] < 1e-2
    sent = checks.sent(answers)
    assert sent is None or sent >= 10 * 2 * 4 * lenet.parameters


@pytest.fixture(scope="module")
def three(gang: Gang) -> Iterator[Gang]:
    """Three replicas, started when there is nothing else to start."""
    assert gang.is_alive
    made = started(3, "torch")
    yield made
    made.close()


@pytest.mark.parametrize("training", [mlp, lenet], ids=lambda training: training.name)
def test_losses_do_not_depend_on_the_number_of_replicas(
    gang: Gang, three: Gang, training: Training
) -> None:
    """With 2 and 3 of them they are within 1e-5 of those of one worker in float64."""
    expected = np.array(trajectories.expected_losses(training, _SHARED_BATCH, lazy=False)[:10])
    for replicas in (gang, three):
        answers = _judged(replicas, _SHARED_BATCH, training)
        losses = np.mean([answer["losses"] for answer in answers], axis=0)
        np.testing.assert_allclose(losses, expected, rtol=1e-5)


@LANGUAGE_MODELS
def test_a_language_model_is_shared(gang: Gang, step: ModelStep) -> None:
    """With a softmax over all words, or over a few; a worker can step alone."""
    assert trains_as_one(gang, step, "eager", _PATIENCE_S).max_loss_deviation < 1e-5
    timed = gang.ask("alone", 3, limit_s=_PATIENCE_S, doing="stepping alone")
    assert all(rank["seconds"] > 0 for rank in timed)
    sent = checks.sent(timed)
    # The barrier's, and once what a layer holds beside its parameters; gradients have 390 KB.
    assert sent is None or sent < 5000


@pytest.mark.parametrize("collective", COLLECTIVES, ids=lambda collective: collective.name)
def test_exchanges_are_right(gang: Gang, collective: Collective) -> None:
    """Before and after steps that are timed, with as many bytes as it takes at least."""
    elements = 1002
    task = asdict(Task(collective.name, elements, "cpu", "eager", "float32", sparse=False))
    gang.ask("bind", task, limit_s=_PATIENCE_S, doing="building")
    answers = gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
    least_bytes = 3 * 4 * elements * collective.sent(2)
    checks.refuse_silence("3 steps", checks.sent(answers), least_bytes, "numbers")
    gang.ask("round", 3, limit_s=_PATIENCE_S, doing="stepping")
    assert gang.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying") == [{}, {}]


@pytest.mark.parametrize(
    ("batch", "error", "said"),
    [
        (16, WrongGradient, "what 2 replicas exchange is wrong: the gradient by parameter 0"),
        (32, WrongGradient, "what 2 replicas exchange is wrong: the gradient by parameter 0"),
        (48, WrongTraining, "worker 1 has other weights than worker 0 before the first step"),
        (64, WrongTraining, "worker 1 has other weights than worker 0 after step 3"),
    ],
    ids=["exchanges nothing", "adds up", "begins otherwise", "skips an update"],
)
def test_cheats_are_found(
    gang: Gang, batch: int, error: type[VerificationError], said: str
) -> None:
    """By what is checked before anything is timed."""
    with pytest.raises(error, match=said):
        _judged(gang, batch)
