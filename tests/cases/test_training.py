"""Training as cases: what is not everyone's training is never timed, the rest to the digit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from fwbench.cases import training, verify
from fwbench.cases.case import Case
from fwbench.cases.training import LoaderCase, LoopCase, StepCase
from fwbench.errors import Diverged, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job
from fwbench.plugin import host
from fwbench.presets import Schedule
from fwbench.records import entry as record
from fwbench.workloads import mlp, sentiment_lstm
from fwbench.workloads.models import trajectories
from fwbench.workloads.training import CHECKED_STEPS, Loading, Step, order
from support.fake_learner import FOUND, Trainer, data_set, right_losses, told
from support.fakes import case_of, cell

DISPATCH_S = 2.0**-10
STEP_S = 2.0**-4
LOAD_S = 2.0**-3
#: Of two steps, each of which is enqueued while the one before computes.
EPOCH_S = DISPATCH_S + 2 * STEP_S

KINDS = {Step: StepCase, Loading: LoaderCase}

#: What verifies alone trains on, see test_session.py.
VERIFYING = Schedule(epochs=1, warmup_epochs=0, steps=2)

THREE_EPOCHS = Schedule(3)


@pytest.fixture(name="load", autouse=True)
def _load(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Sixteen images to train on, wherever they are looked for."""
    load = Mock(return_value=data_set(test=[0, 0, 1]))
    monkeypatch.setattr(training, "_load", load)
    return load


def case(
    framework: Trainer | None = None,
    of: Any = mlp,
    schedule: Schedule = THREE_EPOCHS,
    toggles: tuple[tuple[str, str], ...] = (),
    tell: Callable[[Any], Any] = lambda _: None,
    device: str = "cpu",
    execution: str = "eager",
    dtype: str = "float32",
    **settings: Any,
) -> Any:
    """A case of a training loop or a part of one: batches of eight, two of them an epoch."""
    one = cell(
        of,
        size=8,
        direction="train",
        schedule=schedule,
        data=None if isinstance(of, Step) else FOUND,
        toggles=toggles,
        device=device,
        execution=execution,
        dtype=dtype,
    )
    kind = KINDS.get(type(of), LoopCase)
    return case_of(one, framework or Trainer(), kind=kind, tell=tell, **settings)


def measured(*arguments: Any, **more: Any) -> dict[str, Any]:
    """What the record of a case says after it has been measured."""
    one = case(*arguments, **more)
    one.measure()
    facts: dict[str, Any] = one.benchmark.extra_info["fwbench"]
    return facts


def off_by(error: float, step: int) -> Callable[[Job], Sequence[float]]:
    """Losses that are everyone's but for one."""

    def losses(job: Job) -> list[float]:
        found = [*right_losses(job)]
        found[step - 1] += error
        return found

    return losses


def assert_untouched(one: Case) -> None:
    """Nothing was timed or kept, and pytest-benchmark does not complain beside the failure."""
    assert one.benchmark.stats is None
    assert one.benchmark.extra_info == {}
    assert host.of(one.benchmark) is None
    one.benchmark._cleanup()
    one.benchmark._logger.warning.assert_not_called()


# The check

loops_and_steps = pytest.mark.parametrize("of", [mlp, mlp.step], ids=lambda of: str(of.name))

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
    facts = measured(Trainer(check_losses=off_by(2.0**-16, 3), noted=noted), of)
    expected = {
        "parameters": 109_386,
        "checked_steps": CHECKED_STEPS,
        "max_loss_deviation": pytest.approx(2.0**-16, rel=1e-9),
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
        check_losses=lambda job: trajectories.of(job.training, job.batch, lazy=True),
    )
    one = case(lazy, sentiment_lstm.step)
    if update == "lazy":
        one.measure()
    else:
        with pytest.raises(WrongTraining):
            one.measure()


def test_the_check_trains_as_described_and_then_the_framework_as_it_does() -> None:
    """Exactly placed constants and no dropout for the check, and neither for what is timed."""
    framework = Trainer()
    case(framework).measure()
    (learner,) = framework.learners
    begun = [event for event in learner.events if event[0] in ("reset", "epoch")]
    assert begun[:4] == [("reset", True), ("reset", False), ("reset", False), ("epoch",)]
    assert ("reset", True) not in begun[1:]


# Loops


def test_rounds_are_epochs() -> None:
    """Whole ones, until their results exist; dispatch is until the last step has returned."""
    framework = Trainer(first_s=8.0, step_s=lambda step: 1.0 if step < 2 else STEP_S)
    one = case(framework, schedule=Schedule(4, repetitions=2))
    one.measure()
    facts = one.benchmark.extra_info["fwbench"]
    assert one.benchmark.stats.stats.data == [EPOCH_S] * 6
    assert one.benchmark.stats.iterations == 1
    assert (facts["completion_s"], facts["dispatch_s"]) == (EPOCH_S, 2 * DISPATCH_S)
    assert (facts["warmup_epochs"], facts["repetitions"]) == (1, 2)
    assert (facts["warmup_calls"], facts["steady"]) == (2 * 2, None)
    assert facts["warmup_s"] == 2 * (DISPATCH_S + 2.0)


def test_a_synchronous_framework_has_one_time() -> None:
    """Where steps return when they are done, dispatch is completion."""
    facts = measured(Trainer(asynchronous=False))
    assert facts["dispatch_s"] == facts["completion_s"] == 2 * (DISPATCH_S + STEP_S)


def test_the_first_step_is_kept_apart() -> None:
    """What it costs beside the others is compilation, and in no epoch."""
    facts = measured(Trainer(first_s=8.0))
    assert facts["first_call_s"] == 8.0 + DISPATCH_S + STEP_S
    assert facts["compile_s"] == 8.0
    assert {epoch["seconds"] for epoch in facts["epochs"]} == {EPOCH_S}


def test_compilation_is_what_the_first_step_took_beyond_the_median_of_the_others() -> None:
    """The first one itself is not in that median."""
    # Of the other nine steps of the check, five are short.
    framework = Trainer(
        first_s=8.0,
        dispatch_s=0.0,
        asynchronous=False,
        step_s=lambda step: 2.0**-5 if step <= 5 else 2.0**-3,
    )
    assert measured(framework)["compile_s"] == 8.0


def test_a_first_step_that_is_fast_compiles_nothing() -> None:
    """There is no negative time."""
    faster = Trainer(asynchronous=False, step_s=lambda step: 0.0 if step == 0 else STEP_S)
    assert measured(faster)["compile_s"] == 0.0


def test_the_record_of_a_loop_says_what_was_measured() -> None:
    """The cell, the data, the epochs, and rates and sums over them."""
    facts = measured(Trainer(answers=told(*[(1.0, 0.0)] * 3)), device="gpu:0")
    expected = {
        "schema": record.SCHEMA,
        "workload": "mlp",
        "framework": "fake",
        "framework_version": "1.2",
        "device": "gpu:0",
        "device_name": "Fake 9000",
        "execution": "eager",
        "direction": "train",
        "dtype": "float32",
        "size": 8,
        "threads": 2,
        "flops": None,
        "bytes": None,
        "data": {
            "name": "mnist",
            "source": "real",
            "origin": "mnist.npz",
            "digest": "0123456789abcdef",
            "train": 16,
            "validation": "test",
            "test": 3,
        },
        "steps_per_epoch": 2,
        "epoch_s": EPOCH_S,
        "step_s": EPOCH_S / 2,
        "total_s": [3 * EPOCH_S],
        "first_epoch_excess": 0.0,
        "images_per_s": 16 / EPOCH_S,
        "test_accuracy": [{"repetition": 1, "epoch": 3, "accuracy": 2 / 3}],
        "peak_device_memory_bytes": None,
    }
    assert {name: facts[name] for name in expected} == expected
    assert [epoch["warmup"] for epoch in facts["epochs"]] == [True, False, False]
    assert "cpu_utilization" in facts


def test_a_validation_part_of_its_own_is_counted(load: Mock) -> None:
    """The record says how many examples it has."""
    load.return_value = data_set(test=[0, 0, 1], validation=[0, 1])
    assert measured()["data"]["validation"] == 2


def test_data_is_read_where_it_was_found(load: Mock) -> None:
    """With the folder that keeps what takes long to make; the same for the loader alone."""
    for of in (mlp, mlp.loader):
        one = case(Trainer(load_s=LOAD_S), of)
        one._cache = Path("kept")
        one.measure()
        load.assert_called_with(FOUND, Path("kept"))


def test_a_schedule_with_fewer_steps() -> None:
    """Rounds and rates are of the steps that were made."""
    one = case(schedule=Schedule(2, steps=1))
    one.measure()
    facts = one.benchmark.extra_info["fwbench"]
    assert one.benchmark.stats.stats.data == [DISPATCH_S + STEP_S]
    assert facts["steps_per_epoch"] == 1
    assert facts["images_per_s"] == 8 / (DISPATCH_S + STEP_S)


def test_toggles_reach_the_learner_and_the_record() -> None:
    """Those that were not asked for with their defaults, those that make no difference not at all.

    The learning rate is the loop's to change.
    """
    asked = (("workers", "2"), ("sparse", "on"), ("decay", "on"))
    framework = Trainer()
    facts = measured(framework, sentiment_lstm, toggles=asked)
    (learner,) = framework.learners
    assert learner.job == Job(sentiment_lstm, "cpu", "eager", "float32", 8, workers=2, sparse=True)
    assert learner.of("rate") == [[1e-3]] * 3
    assert facts["toggles"].items() >= dict(asked).items()
    assert [facts[name] for name, _ in asked] == ["2", "on", "on"]
    plain = Trainer()
    facts = measured(plain)
    assert plain.learners[0].job == Job(mlp, "cpu", "eager", "float32", 8)
    assert plain.learners[0].of("rate") == []
    assert facts["toggles"].items() >= {"workers": "0", "decay": "off"}.items()
    assert not facts["toggles"].keys() & {"sparse", "onednn"}
    assert "workers" not in facts


@loops_and_steps
@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_step_is_made_in_the_scope_of_its_case(of: Any, device: str, dtype: str) -> None:
    """Those of the check, of warm-up epochs and of rounds have its device and dtype."""
    framework = Trainer()
    case(framework, of, device=device, dtype=dtype).measure()
    assert {*framework.called} == {(device, dtype)}
    assert framework.entered is None


def test_measuring_a_loop_returns_nothing() -> None:
    """There is no result that a test could look at."""
    assert case().measure() is None


def test_epochs_are_told_of_while_the_case_runs() -> None:
    """With all that a live line shows."""
    heard: list[dict[str, Any]] = []
    facts = measured(schedule=Schedule(2, repetitions=2), tell=heard.append)
    more = {"epochs": 2, "repetitions": 2, "rate": 16 / EPOCH_S, "unit": "images"}
    assert heard == [{**epoch, **more} for epoch in facts["epochs"]]


def test_a_profile_is_of_an_epoch_that_is_not_in_the_record() -> None:
    """With --benchmark-cprofile."""
    framework = Trainer()
    one = case(framework, cprofile=True)
    one.measure()
    facts = one.benchmark.extra_info["fwbench"]
    (learner,) = framework.learners
    assert len(learner.of("epoch")) == len(facts["epochs"]) + 1 == 4
    assert one.benchmark.stats.stats.data == [EPOCH_S] * 2
    assert facts["dispatch_s"] == 2 * DISPATCH_S
    assert one.benchmark.stats.cprofile_stats is not None


# Memory


def test_peak_memory_is_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the process since the case had its data, and what the framework knows of the device."""

    class Watching(Trainer):
        def watch_memory(self, device: str) -> Callable[[], int | None]:
            return lambda: {"gpu:0": 4096}[device]

    events: list[str] = []
    monkeypatch.setattr(training, "reset_peak_memory", lambda: events.append("reset") or True)
    monkeypatch.setattr(training, "peak_memory_bytes", lambda: events.append("read") or 1234)
    facts = measured(Watching(), device="gpu:0")
    assert facts["host_memory_before_bytes"] == facts["peak_host_memory_bytes"] == 1234
    assert facts["peak_device_memory_bytes"] == 4096
    assert events == ["reset", "read", "read"]


def test_a_peak_that_is_older_than_the_case_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the peak cannot be reset it would be another case's."""
    monkeypatch.setattr(training, "reset_peak_memory", lambda: False)
    monkeypatch.setattr(training, "peak_memory_bytes", lambda: 1234)
    assert measured()["peak_host_memory_bytes"] is None


# Divergence


@pytest.mark.parametrize("epoch", [1, 2, 3], ids=["warm-up", "a round", "the last round"])
def test_what_diverges_has_no_record(epoch: int) -> None:
    """Whichever epoch it is: neither fwbench nor pytest-benchmark keeps its times."""
    first = 2 * (epoch - 1)
    one = case(Trainer(loss_of=lambda step: math.nan if step >= first else 1.0))
    with pytest.raises(Diverged, match=f"at step 1 of 2 in epoch {epoch}"):
        one.measure()
    assert one.benchmark.extra_info == {}
    assert host.of(one.benchmark) is None


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


# Steps


def test_a_step_is_measured_like_an_operation() -> None:
    """Until its update is done, after a warm-up, on a batch that lies on the device."""
    framework = Trainer(first_s=8.0)
    one = case(framework, mlp.step)
    one.measure()
    facts = one.benchmark.extra_info["fwbench"]
    assert {*one.benchmark.stats.stats.data} == {DISPATCH_S + STEP_S}
    assert (facts["completion_s"], facts["dispatch_s"]) == (DISPATCH_S + STEP_S, DISPATCH_S)
    assert facts["first_call_s"] == 8.0 + DISPATCH_S + STEP_S
    assert (facts["warmup_calls"], facts["steady"]) == (10, True)
    (learner,) = framework.learners
    assert learner.of("reset") == [[False], [True], [False]]
    assert learner.of("epoch") == learner.of("order") == learner.of("logits") == []


def test_a_step_reads_no_data(load: Mock) -> None:
    """Its batch is one of the check's."""
    seen = []

    class Looking(Trainer):
        def learner(self, job: Job) -> Any:
            made = super().learner(job)
            place = made.place
            made.place = lambda batch: seen.append(batch) or place(batch)
            return made

    facts = measured(Looking(), mlp.step)
    load.assert_not_called()
    expected = mlp.check_batches(8)
    for (examples, labels), (x, y) in zip(
        seen, [expected[0], *expected[:CHECKED_STEPS]], strict=True
    ):
        np.testing.assert_array_equal(examples, x)
        np.testing.assert_array_equal(labels, y)
    assert "data" not in facts


def test_a_step_has_no_facts_of_epochs() -> None:
    """It has its times, and what the check found."""
    facts = measured(of=mlp.step)
    assert (facts["workload"], facts["direction"]) == ("mlp_step", "train")
    assert not facts.keys() & {"epochs", "steps_per_epoch", "images_per_s", "test_accuracy"}


def test_what_a_step_compiled_is_in_its_record() -> None:
    """The first call, before the check, is the one that compiles; the rounds are what is usual."""
    assert measured(Trainer(first_s=8.0), mlp.step)["compile_s"] == 8.0
    faster = Trainer(asynchronous=False, step_s=lambda step: 0.0 if step == 0 else STEP_S)
    assert measured(faster, mlp.step)["compile_s"] == 0.0


# Loaders


def test_a_loader_is_measured_by_whole_passes() -> None:
    """Over the batches of an epoch, without a step; the record has their number and the data."""
    framework = Trainer(load_s=LOAD_S)
    one = case(framework, mlp.loader)
    one.measure()
    facts = one.benchmark.extra_info["fwbench"]
    assert {*one.benchmark.stats.stats.data} == {2 * LOAD_S}
    assert (facts["workload"], facts["steps_per_epoch"]) == ("mlp_loader", 2)
    assert facts["data"]["train"] == 16
    assert framework.called == []
    (learner,) = framework.learners
    assert learner.of("order") == [order(16, 0, 0).tolist()]


@pytest.mark.parametrize(
    ("steps", "visited"), [(1, 8), (2, 16), (9, 16)], ids=["fewer", "all", "more"]
)
def test_a_loader_has_the_batches_of_the_schedule(steps: int, visited: int) -> None:
    """As many as the loop would train on."""
    framework = Trainer(load_s=LOAD_S)
    facts = measured(framework, mlp.loader, schedule=Schedule(3, steps=steps))
    assert framework.learners[0].of("order") == [order(16, 0, 0)[:visited].tolist()]
    assert facts["steps_per_epoch"] == visited // 8
    assert facts["completion_s"] == visited // 8 * LOAD_S


@pytest.mark.parametrize(
    "loads",
    [
        lambda batch: (batch[0][::-1], batch[1][::-1]),
        lambda batch: (batch[0][::-1], batch[1]),
        lambda batch: (batch[0], 1 - batch[1]),
        lambda batch: (batch[0] * 2, batch[1]),
        lambda batch: (batch[0][:-1], batch[1][:-1]),
        lambda batch: (batch[0].reshape(8, -1), batch[1]),
    ],
    ids=["another order", "shuffled apart", "labels", "scale", "too short", "layout"],
)
@pytest.mark.parametrize("disabled", [False, True])
def test_a_loader_whose_batches_are_wrong_is_never_timed(
    loads: Callable[[Any], Any], disabled: bool
) -> None:
    """Examples and labels are those that were asked for, in the framework's layout."""
    one = case(Trainer(loads=loads), mlp.loader, disabled=disabled)
    with pytest.raises(WrongResult, match="last batch does not hold the examples"):
        one.measure()
    assert_untouched(one)


def test_a_loader_has_workers_and_no_other_toggle() -> None:
    """They are in the record by name."""
    framework = Trainer(load_s=LOAD_S)
    facts = measured(framework, mlp.loader, toggles=(("workers", "2"),))
    assert framework.learners[0].job.workers == 2
    assert facts["workers"] == facts["toggles"]["workers"] == "2"
    assert "decay" not in facts["toggles"]
