"""TensorFlow's replicas train as one worker does; each way not to is found before any timing."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fwbench import workloads
from fwbench.errors import VerificationError, WrongGradient, WrongTraining
from fwbench.gangs import checks
from fwbench.gangs.gang import Gang
from fwbench.gangs.shares import Task
from fwbench.records.facts import CaseFacts
from fwbench.workloads.models.steps import ModelStep
from support import served_steps
from support.gangs import LANGUAGE_MODELS, installed, started, trains_as_one

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def cheating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A framework whose replicas make mistakes that depend on their batch."""
    name = "cheating_tensorflow"
    folder = tmp_path_factory.mktemp("installed")
    installed(folder, name, "support.cheating_tensorflow:CheatingTensorFlow")
    with pytest.MonkeyPatch.context() as patch:
        path = [str(folder), str(_TESTS), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        yield name


@pytest.fixture(scope="module")
def gang(cheating: str) -> Iterator[Gang]:
    """Two replicas, started once."""
    made = started(2, cheating)
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(cheating: str) -> Iterator[Gang]:
    """Two workers and two parameter servers, started once."""
    made = started(2, cheating, strategy="ps_async", servers=2, coordinator="coordinator")
    yield made
    made.close()


def _bind(gang: Gang, name: str, size: int) -> None:
    task = asdict(Task(name, size, "cpu", "graph", "float32", sparse=False))
    gang.ask("bind", task, limit_s=_PATIENCE_S, doing="building")


def _asked(gang: Gang, step: str, batch: int) -> checks.Answers:
    """The results of replicas in training on a global batch."""
    _bind(gang, step, batch)
    return gang.ask("check", 10, limit_s=_PATIENCE_S, doing="checking")


def _judged(gang: Gang, step: str, batch: int) -> tuple[CaseFacts, Any]:
    """The same, once it was judged."""
    answers = _asked(gang, step, batch)
    objective = getattr(workloads, step).training
    if gang.composition.servers:
        share = batch // gang.composition.replicas
        return checks.asynchronous(answers, objective, share, "float32", "before the timing")
    return checks.training(answers, objective, batch, "float32", "before the timing")


@pytest.mark.parametrize("step", ["lenet_step", "mlp_step"])
def test_two_replicas_train_as_one_worker(gang: Gang, step: str) -> None:
    """The same losses, gradients and weights, and as many bytes as the gradients have."""
    facts, checked = _judged(gang, step, 80)
    assert facts.max_loss_deviation < 1e-5
    assert checked.gradient_error < 1e-3
    (sent, _) = (told["sent_bytes"] for told in _round(gang, 10))
    least = 10 * 4 * getattr(workloads, step).training.parameters
    assert sent is None or sent >= least


@LANGUAGE_MODELS
def test_a_language_model_is_shared(gang: Gang, step: ModelStep) -> None:
    """With a softmax over all words, or over a few."""
    assert trains_as_one(gang, step, "graph", _PATIENCE_S).max_loss_deviation < 1e-5


def test_three_replicas_train_as_one_worker() -> None:
    """Shares of an uneven number of examples differ."""
    made = started(3, "tensorflow")
    try:
        for step in ("lenet_step", "mlp_step"):
            facts, _ = _judged(made, step, 48)
            assert facts.max_loss_deviation < 1e-5
    finally:
        made.close()


def _round(gang: Gang, steps: int = 3) -> list[Any]:
    return gang.ask("round", steps, limit_s=_PATIENCE_S, doing="stepping")


@pytest.mark.parametrize(("exchange", "bytes_each"), [("all_reduce", 4008), ("all_gather", 2004)])
def test_exchanges_of_arrays_are_right(gang: Gang, exchange: str, bytes_each: int) -> None:
    """Before and after steps that are timed; they send what they must."""
    _bind(gang, exchange, 1002)
    answers = gang.ask("check", 3, limit_s=_PATIENCE_S, doing="checking")
    for told in answers:
        assert told["sent_bytes"] is None or told["sent_bytes"] >= 3 * bytes_each
    _round(gang)
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
        _judged(gang, "lenet_step", batch)


# Parameter servers


@pytest.mark.parametrize("step", ["lenet_step", "mlp_step"])
def test_workers_of_servers_train(served: Gang, step: str) -> None:
    """Alone as one process, and together every update arrives, also of timed steps."""
    before = served.usage()
    facts, checked = _judged(served, step, 80)
    sent = [[each["sent_bytes"] for each in used] for used in (before, served.usage())]
    assert facts.max_loss_deviation < 1e-5
    assert checked.gradient_error < 1e-3
    assert checked.updates == 10 + 20  # all go on where one has ended
    assert [place.name for place, _ in served.serving] == [
        *("worker 0 of 2", "worker 1 of 2", "server 0 of 2", "server 1 of 2"),
    ]
    assert None in sent[0] or all(map(operator.lt, *sent)), "a process has sent nothing"
    (told,) = _round(served, 10)
    assert told["seconds"] > 0.0
    assert served.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying") == [
        {"updates": [20, 20]}
    ]


@pytest.mark.parametrize(
    ("batch", "error", "said"),
    [
        (16, WrongGradient, "what a worker sends is wrong: the gradient by parameter 0"),
        (32, WrongTraining, "workers have sent 30 updates, and the servers have made 29"),
        (48, WrongGradient, "what a worker sends is wrong: the gradient by parameter 0"),
    ],
    ids=["adds up", "loses a step", "never updates"],
)
def test_cheats_of_workers_of_servers_are_found(
    served: Gang, batch: int, error: type[VerificationError], said: str
) -> None:
    """By what is checked before anything is timed."""
    with pytest.raises(error, match=said):
        _judged(served, "lenet_step", batch)


@served_steps.HONEST
def test_steps_that_compute_nothing_are_right(
    served: Gang, name: str, size: int, bytes_each: int
) -> None:
    """Before and after steps that are timed."""
    served_steps.are_right(served, _bind, name, size, bytes_each)


@served_steps.CHEATING
def test_steps_that_leave_something_out_are_found(
    served: Gang, name: str, size: int, said: str
) -> None:
    """By what is checked before anything is timed."""
    served_steps.are_found(served, _bind, name, size, said)
