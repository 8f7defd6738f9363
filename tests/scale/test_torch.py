"""PyTorch's replicas train as one worker does; each way not to is found before any timing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from fwbench.errors import VerificationError, WrongGradient, WrongTraining
from fwbench.scale import judgement
from fwbench.scale.gang import Gang
from fwbench.scale.shares import Task
from fwbench.workloads import lenet
from support.gangs import installed, started

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 120.0


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


def _judged(gang: Gang, batch: int) -> judgement.Answers:
    """What both replicas found in training on a global batch, once it was judged."""
    task = asdict(Task("lenet_step", batch, "cpu", "eager", "float32", sparse=False))
    gang.ask("bind", task, limit_s=_PATIENCE_S, doing="building")
    answers = gang.ask("check", 10, limit_s=_PATIENCE_S, doing="checking")
    judgement.training(answers, lenet, batch, "float32", "before the timing")
    return answers


def test_two_replicas_train_as_one_worker(gang: Gang) -> None:
    """The same losses, gradients and weights, and as many bytes as the gradients have."""
    answers = _judged(gang, 80)
    first = answers[0]
    assert first["gradient_error"] < 1e-2
    sent = judgement.sent(answers)
    assert sent is None or sent >= 10 * 2 * 4 * lenet.parameters


def test_sums_of_arrays_are_right(gang: Gang) -> None:
    """Before and after steps that are timed."""
    task = asdict(Task("all_reduce", 1001, "cpu", "eager", "float32", sparse=False))
    gang.ask("bind", task, limit_s=_PATIENCE_S, doing="building")
    gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
    gang.ask("round", 3, limit_s=_PATIENCE_S, doing="stepping")
    assert gang.ask("look", limit_s=_PATIENCE_S, doing="looking") == [{}, {}]


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
