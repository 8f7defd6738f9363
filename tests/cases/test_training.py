"""Training as cases: epochs, steps and loaders are measured to the digit."""

import errno
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from fwbench.cases.epochs import steps_of
from fwbench.cases.learning import LOSSES_TIMED, TURNS, UPDATES_TIMED
from fwbench.errors import DataError, Diverged, IsolationError, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job, Placed
from fwbench.measure import resources
from fwbench.records import entry as record
from fwbench.terms.presets import Schedule
from fwbench.workloads import mlp, sentiment_lstm, word_lm
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import LSTM, Dense, Embedding, Tokens
from fwbench.workloads.training import CHECKED_STEPS, order
from support.fake_learner import (
    FOUND,
    FakeLearner,
    FakeLoader,
    Trainer,
    answering,
    case,
    data_set,
    loops_and_steps,
    measured,
)
from support.fakes import fails, recorded

pytestmark = pytest.mark.usefixtures("load")

DISPATCH_S = 2.0**-10
STEP_S = 2.0**-4
LOAD_S = 2.0**-3

#: Of two steps, each of which is enqueued while the one before computes.
EPOCH_S = DISPATCH_S + 2 * STEP_S


# Loops


def test_rounds_are_epochs() -> None:
    """Whole ones, until their results exist; dispatch is until the last step has returned."""
    framework = Trainer(first_s=8.0, step_s=lambda step: 1.0 if step < 2 else STEP_S)
    training_case = case(framework, schedule=Schedule(4, repetitions=2))
    facts = recorded(training_case)
    assert training_case.benchmark.stats.stats.data == [EPOCH_S] * 6
    assert training_case.benchmark.stats.iterations == 1
    assert (facts["completion_s"], facts["dispatch_s"]) == (EPOCH_S, 2 * DISPATCH_S)
    assert (facts["warmup_epochs"], facts["repetitions"]) == (1, 2)
    assert (facts["warmup_calls"], facts["steady"]) == (2 * 2, None)
    assert facts["warmup_s"] == 8.0 + 2 * (DISPATCH_S + 2.0)


def test_a_synchronous_framework_has_one_time() -> None:
    facts = measured(Trainer(asynchronous=False))
    assert facts["dispatch_s"] == facts["completion_s"] == 2 * (DISPATCH_S + STEP_S)


def test_the_first_epoch_is_cold() -> None:
    """Nothing is trained before it; the learner is checked once all epochs are over."""
    framework = Trainer(first_s=8.0)
    facts = measured(framework)
    first, *others = [epoch["seconds"] for epoch in facts["epochs"]]
    assert first == 8.0 + EPOCH_S
    assert {*others} == {EPOCH_S}
    assert "first_call_in_process_s" not in facts
    assert facts["first_epoch_excess"] == 8.0 / EPOCH_S
    (learner,) = framework.learners
    assert learner.events[0] == ("reset", False)
    assert facts["checked_steps"] == CHECKED_STEPS


def test_the_first_epoch_of_a_used_process_is_not_reported() -> None:
    """Another case may have warmed it up."""
    training_case = case(Trainer(first_s=8.0))
    training_case._is_first = False
    assert recorded(training_case)["first_epoch_excess"] is None


@pytest.mark.parametrize(
    ("workload", "first_s", "step_s", "compile_s"),
    [
        (mlp, 8.0, lambda _: STEP_S, 8.0),
        (mlp, 8.0, lambda step: 2.0**-5 if step <= 5 else 2.0**-3, 8.0),
        (mlp, 0.0, lambda step: 0.0 if step == 0 else STEP_S, 0.0),
        (mlp.step, 8.0, lambda _: STEP_S, 8.0),
        (mlp.step, 0.0, lambda step: 0.0 if step == 0 else STEP_S, 0.0),
    ],
    ids=["loop", "median", "fast first step", "step", "fast first step alone"],
)
def test_compilation_is_what_the_first_step_took_beyond_the_median_of_the_others(
    workload: Any, first_s: float, step_s: Callable[[int], float], compile_s: float
) -> None:
    framework = Trainer(first_s=first_s, dispatch_s=0.0, asynchronous=False, step_s=step_s)
    facts = measured(framework, workload, execution="graph")
    assert facts["compile_s"] == compile_s
    assert measured(framework, workload).get("compile_s") is None  # eager


@pytest.mark.parametrize("workload", [mlp, mlp.step], ids=lambda workload: str(workload.name))
def test_a_used_process_does_not_show_compilation(workload: Any) -> None:
    """The case before may have compiled a part of it."""
    training_case = case(Trainer(first_s=8.0), workload, execution="graph")
    training_case._is_first = False
    assert recorded(training_case).get("compile_s") is None


def test_the_record_of_a_loop_says_what_was_measured() -> None:
    facts = measured(Trainer(answers=answering((1.0, 0.0))), device="gpu:0")
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
    load.return_value = data_set(test=[0, 0, 1], validation=[0, 1])
    assert measured()["data"]["validation"] == 2


def test_data_is_read_where_it_was_found(load: Mock) -> None:
    """With the folder of the cache; the same for the loader alone."""
    for workload in (mlp, mlp.loader):
        training_case = case(Trainer(load_s=LOAD_S), workload)
        training_case._cache = Path("kept")
        training_case.measure()
        load.assert_called_with(FOUND, Path("kept"))


def test_a_schedule_with_fewer_steps() -> None:
    training_case = case(schedule=Schedule(2, steps=1))
    facts = recorded(training_case)
    assert training_case.benchmark.stats.stats.data == [DISPATCH_S + STEP_S]
    assert facts["steps_per_epoch"] == 1
    assert facts["images_per_s"] == 8 / (DISPATCH_S + STEP_S)


def test_toggles_reach_the_learner_and_the_record() -> None:
    """Others are recorded with their defaults, unless they make no difference."""
    requested = (("workers", "2"), ("sparse", "on"), ("decay", "on"))
    framework = Trainer()
    facts = measured(framework, sentiment_lstm, toggles=requested)
    (learner,) = framework.learners
    assert learner.job == Job(sentiment_lstm, "cpu", "eager", "float32", 8, workers=2, sparse=True)
    assert learner.events_of("rate") == [[1e-3]] * 3
    assert facts["toggles"].items() >= dict(requested).items()
    assert [facts[name] for name, _ in requested] == ["2", "on", "on"]
    plain = Trainer()
    facts = measured(plain)
    assert plain.learners[0].job == Job(mlp, "cpu", "eager", "float32", 8)
    assert plain.learners[0].events_of("rate") == []
    assert facts["toggles"].items() >= {"workers": "0", "decay": "off"}.items()
    assert not facts["toggles"].keys() & {"sparse", "onednn"}
    assert "workers" not in facts


@loops_and_steps
@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_step_is_made_in_the_scope_of_its_case(
    workload: Any, device: str, dtype: str
) -> None:
    """In the check, in warm-up epochs and in rounds."""
    framework = Trainer()
    case(framework, workload, device=device, dtype=dtype).measure()
    assert {*framework.called} == {(device, dtype)}
    assert framework.entered is None


def test_epochs_are_reported_while_the_case_runs() -> None:
    heard: list[dict[str, Any]] = []
    facts = measured(schedule=Schedule(2, repetitions=2), tell=heard.append)
    more = {"epochs": 2, "repetitions": 2, "rate": 16 / EPOCH_S, "unit": "images"}
    assert heard == [{**epoch, **more} for epoch in facts["epochs"]]


def test_a_profile_is_of_an_epoch_that_is_not_in_the_record() -> None:
    framework = Trainer()
    training_case = case(framework, cprofile=True)
    facts = recorded(training_case)
    (learner,) = framework.learners
    after = learner.events.index(("reset", True), 1)
    begun = [event for event in learner.events[:after] if event == ("epoch",)]
    assert len(begun) == len(facts["epochs"]) + 1 + UPDATES_TIMED + 1 == 5 + UPDATES_TIMED
    assert training_case.benchmark.stats.stats.data == [EPOCH_S] * 2
    assert facts["dispatch_s"] == 2 * DISPATCH_S
    assert training_case.benchmark.stats.cprofile_stats is not None


# Memory


def test_peak_memory_is_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Trainer()
    monkeypatch.setattr(framework, "watch_memory", lambda device: lambda: {"gpu:0": 4096}[device])
    events: list[str] = []
    monkeypatch.setattr(resources, "reset_peak_memory", lambda: events.append("reset") or True)
    monkeypatch.setattr(resources, "peak_memory_bytes", lambda: events.append("read") or 1234)
    monkeypatch.setattr(resources, "_children", lambda *_: [])
    facts = measured(framework, device="gpu:0")
    assert facts["host_memory_before_bytes"] == facts["peak_host_memory_bytes"] == 1234
    assert facts["peak_device_memory_bytes"] == 4096
    assert events == ["reset", "read", "read"]


def test_a_peak_that_is_older_than_the_case_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the peak cannot be reset it would be another case's."""
    monkeypatch.setattr(resources, "reset_peak_memory", lambda: False)
    monkeypatch.setattr(resources, "peak_memory_bytes", lambda: 1234)
    assert measured()["peak_host_memory_bytes"] is None


def test_the_size_of_the_data_set_is_in_the_record() -> None:
    """With the training part in floats; parts that are shared count once."""
    pixels, labels = 16 + 3, 4 * (16 + 3)
    assert measured()["data_memory_bytes"] == pixels + labels + 4 * 16


# Divergence


@pytest.mark.parametrize("epoch", [1, 2, 3], ids=["warm-up", "a round", "the last round"])
def test_a_diverging_training_has_no_record(epoch: int) -> None:
    first = 2 * (epoch - 1)
    training_case = case(Trainer(loss_of=lambda step: math.nan if step >= first else 1.0))
    fails(training_case, Diverged, f"at step 1 of 2 in epoch {epoch}")


# Steps


def test_a_step_is_measured_like_an_operation() -> None:
    """Until its update is done, after a warm-up, on a batch that lies on the device."""
    framework = Trainer(first_s=8.0)
    training_case = case(framework, mlp.step)
    facts = recorded(training_case)
    assert {*training_case.benchmark.stats.stats.data} == {DISPATCH_S + STEP_S}
    assert (facts["completion_s"], facts["dispatch_s"]) == (DISPATCH_S + STEP_S, DISPATCH_S)
    assert facts["first_call_in_process_s"] == 8.0 + DISPATCH_S + STEP_S
    assert (facts["warmup_calls"], facts["steady"]) == (4, True)
    (learner,) = framework.learners
    assert learner.events_of("reset") == [[False], [True], [True], *[[False]] * 4]
    assert learner.events_of("epoch") == learner.events_of("order") == []
    assert learner.events_of("logits") == [[8]] * UPDATES_TIMED  # after the timing
    assert (facts["workload"], facts["direction"]) == ("mlp_step", "train")
    assert facts["images_per_s"] == pytest.approx(8 / facts["completion_s"])
    assert not facts.keys() & {"epochs", "steps_per_epoch", "test_accuracy"}


def test_a_step_reads_no_data(load: Mock) -> None:
    seen = []

    class Looking(FakeLearner):
        def place(self, batch: Any) -> Any:
            seen.append(batch)
            return super().place(batch)

    facts = measured(Trainer(kind=Looking), mlp.step)
    load.assert_not_called()
    timed, check_batches = mlp.timed_batches(8, TURNS), mlp.check_batches(8, CHECKED_STEPS)
    *seen, again, (new, _) = seen
    np.testing.assert_array_equal(again[0], timed[0][0])
    assert not any(np.array_equal(new, x) for x, _ in [*timed, *check_batches])
    repeated = len(seen) - TURNS - CHECKED_STEPS - UPDATES_TIMED - LOSSES_TIMED
    assert repeated > 0
    by_turns = [timed[turn % TURNS] for turn in range(2, 2 + repeated)]
    after = [*by_turns, *check_batches[:UPDATES_TIMED], *check_batches[:LOSSES_TIMED]]
    for (examples, labels), (x, y) in zip(seen, [*timed, *check_batches, *after], strict=True):
        np.testing.assert_array_equal(examples, x)
        np.testing.assert_array_equal(labels, y)
    assert "data" not in facts


# Loaders


def test_a_loader_is_measured_by_whole_passes() -> None:
    """Over the batches of an epoch, without a step; the record has their number and the data."""
    framework = Trainer(load_s=LOAD_S)
    training_case = case(framework, mlp.loader)
    facts = recorded(training_case)
    assert {*training_case.benchmark.stats.stats.data} == {2 * LOAD_S}
    assert (facts["workload"], facts["steps_per_epoch"]) == ("mlp_loader", 2)
    assert facts["data"]["train"] == 16
    assert framework.called == []
    (learner,) = framework.learners
    orders = learner.events_of("order")
    assert all(sorted(each) == [*range(16)] for each in orders)
    rounds = len(training_case.benchmark.stats.stats.data)
    assert len({*map(tuple, orders)}) > rounds, "each round has another"


@pytest.mark.parametrize(
    ("steps", "visited"), [(1, 8), (2, 16), (9, 16)], ids=["fewer", "all", "more"]
)
def test_a_loader_has_the_batches_of_the_schedule(steps: int, visited: int) -> None:
    framework = Trainer(load_s=LOAD_S)
    facts = measured(framework, mlp.loader, schedule=Schedule(3, steps=steps))
    chosen = order(16, 0, 0)[:visited]
    orders = framework.learners[0].events_of("order")
    assert all(sorted(each) == sorted(chosen) for each in orders)
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
    training_case = case(Trainer(loads=loads), mlp.loader, disabled=disabled)
    fails(training_case, WrongResult, "a batch of the loader does not hold the examples")
    assert training_case.benchmark.stats is None


def test_a_loader_that_leaves_batches_out_while_it_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, passes = FakeLoader.__iter__, itertools.count()

    def left_out(loader: FakeLoader) -> Iterator[Placed]:
        """All batches, until they have been looked at."""
        return itertools.islice(whole(loader), 1 if next(passes) > 3 else None)

    monkeypatch.setattr(FakeLoader, "__iter__", left_out)
    fails(case(Trainer(load_s=LOAD_S), mlp.loader), WrongResult, "ended before batch 2")


def test_a_loader_has_workers_and_no_other_toggle() -> None:
    framework = Trainer(load_s=LOAD_S)
    facts = measured(framework, mlp.loader, toggles=(("workers", "2"),))
    assert framework.learners[0].job.workers == 2
    assert facts["workers"] == facts["toggles"]["workers"] == "2"
    assert "decay" not in facts["toggles"]


@pytest.mark.parametrize("workload", [mlp, mlp.loader], ids=lambda workload: str(workload.name))
@pytest.mark.parametrize(
    ("workers", "raised", "message"),
    [
        ("2", IsolationError, r"workers=2\) cannot start .* Read-only .*--shm-size=1g.*workers=0"),
        ("0", OSError, "Read-only file system"),
    ],
)
def test_a_loader_without_shared_memory(
    monkeypatch: pytest.MonkeyPatch, workload: Any, workers: str, raised: Any, message: str
) -> None:
    refused = Mock(side_effect=OSError(errno.EROFS, "Read-only file system"))
    monkeypatch.setattr(FakeLoader, "__iter__", refused)
    with pytest.raises(raised, match=message):
        case(workload=workload, toggles=(("workers", workers),)).measure()


# Texts


LENGTH = 5
WORDS = replace(
    word_lm,
    name="words",
    network=sequential(Embedding(3, 2), LSTM(2, sequences=True), Tokens(), Dense(3, relu=False)),
    shape=(LENGTH,),
    classes=3,
)


def text(examples: int) -> Split:
    tokens = np.random.default_rng(examples).integers(0, 3, (2, examples, LENGTH), dtype=np.int32)
    return Split(*tokens)


TRAIN, TEST = text(16), text(11)


@pytest.fixture
def text(load: Mock) -> None:
    load.return_value = DataSet("text", "real", "text.txt", TRAIN, TEST, TEST, True, "0123456789ab")


def answers(examples: Any) -> Any:
    """A row for each token: each is twice as likely followed by a 0 as by any other."""
    return np.tile(np.log([2.0, 1.0, 1.0]), (examples.size, 1))


def framework(**changes: Any) -> Trainer:
    """It has the labels of a batch one after the other, like the real ones."""
    given: dict[str, Any] = {
        "answers": answers,
        "loads": lambda batch: (batch[0], batch[1].ravel()),
        "asynchronous": False,
        "dispatch_s": 0.0,
        "step_s": lambda _: 0.5,
        "load_s": 0.125,
    }
    return Trainer(**given | changes)


@pytest.mark.usefixtures("text")
def test_each_token_is_answered_for() -> None:
    """Loss and accuracy are means over all tokens, those of the last, shorter batch included."""
    facts = measured(framework(), workload=WORDS)
    zeros = np.mean(TEST.y == 0)
    last = facts["epochs"][-1]
    assert last["validation_accuracy"] == pytest.approx(zeros)
    assert last["validation_loss"] == pytest.approx(math.log(4.0) - zeros * math.log(2.0))
    counts = ("train", "test")
    assert [facts["data"][part] for part in counts] == [16, 11]
    assert (facts["validated_examples"], facts["tested_examples"]) == (11, 11)
    assert facts["tokens_per_s"] == 8 * LENGTH / (0.5 + 0.125)
    assert facts["checked_steps_timed"] > 0


@pytest.mark.usefixtures("text")
def test_a_loader_gives_the_labels_of_each_example_in_order() -> None:
    assert measured(framework(), workload=WORDS.loader)["steps_per_epoch"] == 2
    by_place = framework(loads=lambda batch: (batch[0], batch[1].T.ravel()))
    fails(case(by_place, workload=WORDS.loader), WrongResult, "a batch of the loader does not hold")


@pytest.mark.usefixtures("text")
def test_answers_to_other_labels_fail_after_the_timing() -> None:
    """A step that reads the labels place by place has another loss than the answers."""
    by_place = framework(loads=lambda batch: (batch[0], np.roll(batch[1].ravel(), 1) * 0))
    fails(
        case(by_place, workload=WORDS),
        WrongTraining,
        "after the timing, a step does not train on its",
    )


def test_a_batch_that_the_data_turns_out_not_to_have_is_refused() -> None:
    """Only reading a text tells how long it is."""
    message = r"a batch of 17 is larger than the 16 training examples of mnist \(mnist\.npz\); give"
    with pytest.raises(DataError, match=message):
        steps_of(Schedule(1), data_set(16), 17)
