"""A learner that trains less than it should gets no number, whenever it begins to."""

import math
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.learning import LOSSES_TIMED, UPDATES_TIMED, check, check_timed
from fwbench.cases.verify import LOSS_TOLERANCES
from fwbench.errors import Diverged, VerificationError, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job, Placed
from fwbench.terms.presets import Schedule
from fwbench.workloads import MODELS, cifar_cnn, lenet, mlp, sentiment_lstm
from fwbench.workloads.models import gradients, layers, reference, trajectories
from fwbench.workloads.models.gradients import LOSS_SCALE, Rounded, at_random
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import LSTM, Dense, Embedding
from fwbench.workloads.models.reference import Descent
from fwbench.workloads.objective import Batch, Objective
from fwbench.workloads.training import CHECKED_STEPS, check_rows, order
from fwbench_extras.cheats.honest import HonestLearner
from support.fake_learner import FakeLearner, Trainer, case, loops_and_steps, measured, right_losses
from support.fakes import assert_not_recorded, fails, rounded

pytestmark = pytest.mark.usefixtures("load")

#: Steps are checked before the timing and after it; loops after it alone.
MAYBE_AFTER = "^(after the timing, )?"


def by_first_label(examples: NDArray[Any]) -> NDArray[Any]:
    """Logits that differ from example to example: parts of a batch have other losses."""
    first = examples.reshape(len(examples), -1)[:, :1]
    return np.asarray(np.linspace(0.0, 3.0, 10) * np.sin(1000 * first))


@loops_and_steps
def test_a_step_that_leaves_the_weights_is_found(workload: Any) -> None:
    every_second = Trainer(updates=lambda step: step % 2 == 0)
    message = f"{MAYBE_AFTER}an update is missing: step 2 left all"
    fails(case(every_second, workload), WrongTraining, message)
    assert workload is mlp or len(every_second.called) <= 1 + 2


@loops_and_steps
@pytest.mark.parametrize("interval", [1, 2, 3])
def test_updates_that_are_left_out_once_steps_repeat_are_found(
    workload: Any, interval: int
) -> None:
    """All of them, every second or third: the weights are watched after the timing."""

    class Later(FakeLearner):
        made = 0

        def step(self, examples: Any, labels: Any) -> Any:
            loss = super().step(examples, labels)
            self.made += 1
            if self.made > CHECKED_STEPS + 1 and self.made % interval == 0:
                self.updates -= 1
            return loss

    missing = r"(an update is missing: step [1-3] left all|\d+ timed steps have not trained)"
    fails(case(Trainer(kind=Later), workload), WrongTraining, f"{MAYBE_AFTER}{missing}")


def test_updates_that_an_epoch_leaves_out_are_found() -> None:
    """Its first step is honest, so epochs of one batch do not show it; its losses do."""

    class InEpochs(FakeLearner):
        def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
            losses = []
            for number, batch in enumerate(batches):
                losses.append(self.step(*batch))
                self.steps -= number % 2  # as if that one had not been
            return losses

    message = "^after the timing, this is not the same training: at step 3 "
    fails(case(Trainer(kind=InEpochs)), WrongTraining, message)


def test_an_epoch_that_leaves_out_batches_is_found() -> None:
    class Half(FakeLearner):
        def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
            return super().epoch([*batches][::2])

    message = "^2 batches were to be trained on, and the learner returned 1 losses"
    fails(case(Trainer(kind=Half)), WrongTraining, message)


@loops_and_steps
def test_steps_that_are_honest_until_the_third_are_found(workload: Any) -> None:
    """The losses of the check are then another training's, after every reset."""

    def wrong(job: Job) -> list[float]:
        first, second, *later = right_losses(job)
        return [first, second, *(2 * loss for loss in later)]

    fails(
        case(Trainer(check_losses=wrong), workload),
        WrongTraining,
        f"{MAYBE_AFTER}this is not the same training: at step 3 ",
    )


@loops_and_steps
def test_other_losses_after_the_timing_are_found(workload: Any) -> None:
    resets_before = 1 if workload is mlp else 4

    class Worse(FakeLearner):
        def step(self, examples: Any, labels: Any) -> Any:
            loss = super().step(examples, labels)
            return loss + (len(self.events_of("reset")) > resets_before and self.steps == 3)

    message = f"{MAYBE_AFTER}this is not the same training: at step 3 the loss"
    fails(case(Trainer(kind=Worse), workload), WrongTraining, message)


def test_with_dropout_answers_are_not_compared() -> None:
    """They are another network's; updates and first losses are compared."""
    workload = cifar_cnn.step
    facts = measured(Trainer(loss_of=lambda _: 1.0), workload)
    assert facts["checked_updates_timed"] == UPDATES_TIMED
    every_second = Trainer(updates=lambda step: step < CHECKED_STEPS or step % 2 == 0)
    fails(case(every_second, workload), WrongTraining, "^after the timing, an update is missing")


@loops_and_steps
def test_the_record_says_what_was_checked(workload: Any) -> None:
    facts = measured(Trainer(answers=by_first_label), workload)
    assert (facts["checked_steps"], facts["checked_updates"]) == (CHECKED_STEPS, CHECKED_STEPS)
    assert facts["checked_steps_timed"] == LOSSES_TIMED
    assert facts["checked_updates_timed"] == UPDATES_TIMED


def test_checks_after_the_timing_are_in_no_time() -> None:
    framework = Trainer()
    facts = measured(framework)
    assert len(facts["epochs"]) == 3
    assert facts["total_s"] == [sum(epoch["seconds"] for epoch in facts["epochs"])]
    (learner,) = framework.learners
    assert len(learner.events_of("epoch")) == 3 + UPDATES_TIMED + 1


#: What verifies alone trains on, see test_session.py.


def off_by(error: float, step: int) -> Callable[[Job], Sequence[float]]:
    def losses(job: Job) -> list[float]:
        actual = [*right_losses(job)]
        actual[step - 1] += error
        return actual

    return losses


@loops_and_steps
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"too_many": 1}, "trains 109387 parameters, and its description has 109386"),
        ({"check_losses": off_by(1e-3, 1)}, "at step 1 the loss is"),
        ({"check_losses": off_by(-1e-4, 4)}, "at step 4 the loss is"),
        ({"check_losses": off_by(math.nan, 2)}, "at step 2 the loss is nan"),
        ({"check_losses": off_by(math.inf, 10)}, "at step 10 the loss is inf"),
    ],
    ids=["parameters", "first loss", "a later loss", "NaN", "infinite"],
)
def test_another_training_gets_no_number(
    workload: Any, wrong: dict[str, Any], message: str
) -> None:
    framework = Trainer(**wrong)
    training_case = case(framework, workload)
    fails(training_case, WrongTraining, message)
    (learner,) = framework.learners
    assert learner.steps <= CHECKED_STEPS
    assert_not_recorded(training_case)
    assert workload is mlp or training_case.benchmark.stats is None


@loops_and_steps
def test_what_the_check_found_is_in_the_record(workload: Any) -> None:
    noted = {"epsilon": "inside"}
    facts = measured(Trainer(check_losses=off_by(2.0**-17, 3), noted=noted), workload)
    expected = {
        "parameters": 109_386,
        "checked_steps": CHECKED_STEPS,
        "max_loss_deviation": pytest.approx(2.0**-17, rel=1e-9),
        "loss_tolerance": LOSS_TOLERANCES["float32"],
        "optimizer": {"name": "Adam", **vars(mlp.optimizer), **noted},
    }
    assert {name: facts[name] for name in expected} == expected


def test_the_same_losses_deviate_by_nothing() -> None:
    facts = measured()
    assert facts["max_loss_deviation"] == 0.0
    assert facts["optimizer"] == {"name": "Adam", **vars(mlp.optimizer)}


def test_each_dtype_has_its_tolerance() -> None:
    training_case = case(Trainer(check_losses=off_by(1e-6, 1)), dtype="float64")
    fails(training_case, WrongTraining, r"1e-08 is allowed")


@pytest.mark.parametrize("made", ["lazy", "slices"])
@pytest.mark.parametrize("declared", ["lazy", "slices", "dense"])
def test_updates_of_embeddings_have_losses_of_their_own(made: str, declared: str) -> None:
    """They are compared with what the framework says of its updates."""
    framework = Trainer(
        noted={"update": declared},
        check_losses=lambda job: trajectories.expected_losses(job.training, job.batch, update=made),
    )
    few = sequential(Embedding(40, 8), LSTM(8), Dense(2, relu=False))
    training_case = case(framework, replace(sentiment_lstm, network=few, shape=(12,)).step)
    if made == declared:
        training_case.measure()
    else:
        fails(training_case, WrongTraining, "not the same training")


def test_the_check_trains_as_described_and_then_the_framework_as_it_does() -> None:
    """It is told of the first check, and of what comes after the timing only if it drops out."""
    framework = Trainer()
    case(framework).measure()
    (learner,) = framework.learners
    begun = [event for event in learner.events if event[0] in ("reset", "epoch")]
    assert begun[:2] == [("reset", False), ("epoch",)]
    timed = begun[2:-6]
    assert {*timed} == {("epoch",)}
    assert begun[-6:-3] == [("reset", False), ("epoch",), ("reset", False)]
    assert begun[-3:] == [("reset", True), ("reset", True), ("reset", False)]


def test_steps_with_dropout_are_checked_without_it() -> None:
    framework = Trainer(loss_of=lambda _: 1.0)
    case(framework, cifar_cnn.step).measure()
    (learner,) = framework.learners
    assert [exact for (exact,) in learner.events_of("reset")][-2:] == [True, False]


@pytest.mark.parametrize("workload", [mlp, mlp.step], ids=["loop", "step"])
def test_parameters_on_another_device_are_found(workload: Any) -> None:
    """Losses would be right: the same numbers, by another device."""

    class Elsewhere(FakeLearner):
        def placement(self) -> Mapping[str, int]:
            return {"cpu:0": 8, "gpu:0": 2}

    message = r"8 on cpu:0, 2 on gpu:0 are .*, and 10 on cpu:0 must"
    fails(case(Trainer(kind=Elsewhere), workload), WrongTraining, message)


class Skipping(FakeLearner):
    """Trains on a batch that it is given again, as the same object, never or in part."""

    share = 0.0

    def __init__(self, job: Job, by: Trainer) -> None:
        super().__init__(job, by)
        self.known: list[Any] = []

    def place(self, batch: Any) -> Any:
        return tuple(np.array(array) for array in batch)

    def step(self, examples: Any, labels: Any) -> Any:
        loss = super().step(examples, labels)
        if any(examples is known for known in self.known):
            self.updates -= 1 - self.share
        self.known.append(examples)
        return loss


@pytest.mark.parametrize("workload", [mlp.step, cifar_cnn.step], ids=lambda step: step.name)
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_timed_steps_that_are_left_out_are_found(workload: Any, share: float) -> None:
    """The same steps on batches placed anew end elsewhere, or with dropout farther away."""
    kind = type("Part", (Skipping,), {"share": share})
    framework = Trainer(kind=kind, loss_of=(lambda _: 1.0) if workload is cifar_cnn.step else None)
    message = r"^after the timing, \d+ timed steps have not trained as untimed ones: they moved"
    fails(case(framework, workload), WrongTraining, message)


def verified(framework: Trainer, workload: Any = mlp, **more: Any) -> Any:
    """A case of which nothing is timed: two steps, see test_session.py."""
    schedule = Schedule(epochs=1, warmup_epochs=0, steps=2)
    return case(framework, workload, schedule=schedule, disabled=True, **more)


def test_where_nothing_is_timed_a_few_steps_are_checked_and_an_epoch_is_trained() -> None:
    """Three steps of the check, two of training, one evaluation, and no record."""
    framework, heard = Trainer(), list[Any]()
    training_case = verified(framework, tell=heard.append)
    training_case.measure()
    assert len(framework.called) == 3 + 2
    (learner,) = framework.learners
    assert len(learner.events_of("epoch")) == 1
    assert learner.events_of("order") == [order(16, 0, 0)[:16].tolist()]
    assert training_case.benchmark.stats is None
    assert_not_recorded(training_case)
    assert [(epoch["epochs"], epoch["rate"]) for epoch in heard] == [(1, 0.0)]


def test_where_nothing_is_timed_a_step_is_checked_as_much() -> None:
    """Three steps of the check, the call that is verified, and pytest-benchmark's."""
    framework = Trainer()
    training_case = verified(framework, mlp.step)
    training_case.measure()
    assert len(framework.called) == 1 + 3 + 1
    assert_not_recorded(training_case)


@loops_and_steps
def test_where_nothing_is_timed_wrong_losses_fail_all_the_same(workload: Any) -> None:
    """In the first three steps; later ones are looked at when it is timed."""
    verified(Trainer(check_losses=off_by(1e-2, 4)), workload).measure()
    fails(verified(Trainer(check_losses=off_by(1e-2, 3)), workload), WrongTraining, "at step 3")


def test_where_nothing_is_timed_divergence_fails_all_the_same() -> None:
    fails(verified(Trainer(loss_of=lambda _: math.nan)), Diverged, "diverged")


#: Bits of mantissa behind the first.
TF32, FLOAT32 = 10, 23

CONVOLUTIONS = (layers.Conv,)
PRODUCTS = (layers.Conv, layers.Dense)


def narrow(forward: Callable[..., Any], bits: int, layer: Any, parameters: Any, x: Any) -> Any:
    """A layer whose products, forward and backward, have factors of ``bits`` bits."""
    kernel, *bias = parameters
    result, back = forward(layer, [rounded(kernel, bits), *bias], rounded(x, bits))

    def backward(gradient: NDArray[Any]) -> Any:
        of_inputs, (of_kernel, *_) = back(rounded(gradient, bits))
        _, (_, *of_bias) = back(gradient)  # a sum, and no product
        return of_inputs, [of_kernel, *of_bias]

    return result, backward


def as_computed(job: Job) -> Sequence[float]:
    """The first losses, computed again: stored are those in float64."""
    return reference.losses(job.training, check_rows(job.batch), job.training.checked_steps)


@pytest.fixture
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute layers of some kinds with fewer bits."""
    kinds, bits = request.param
    for kind in kinds:
        of_kind = gradients._FORWARD[kind]
        monkeypatch.setitem(gradients._FORWARD, kind, partial(narrow, of_kind, bits))


@pytest.mark.parametrize(
    "workload",
    [lenet.step, pytest.param(cifar_cnn.step, marks=pytest.mark.nightly)],
    ids=lambda workload: str(workload.name),
)
@pytest.mark.parametrize(
    ("products", "is_right"),
    [((PRODUCTS, FLOAT32), True), ((PRODUCTS, TF32), False), ((CONVOLUTIONS, TF32), False)],
    ids=["float32", "TF32", "convolutions in TF32"],
    indirect=["products"],
)
@pytest.mark.parametrize("disabled", [True, False], ids=["untimed", "timed"])
@pytest.mark.usefixtures("load", "products")
def test_a_training_in_tf32_is_refused(workload: Any, is_right: bool, disabled: bool) -> None:
    """By its first three losses, as where nothing is timed, and by those of a timed case."""
    framework = Trainer(check_losses=as_computed)
    training_case = case(framework, workload, disabled=disabled)
    if is_right:
        training_case.measure()
    else:
        fails(training_case, WrongTraining, f"{LOSS_TOLERANCES['float32']:g} is allowed")


gpt_small, word_lm, googlenet_bn = (
    next(step.at(step.smallest) for step in MODELS if step.model == name)
    for name in ("gpt_small", "word_lm", "googlenet_bn")
)


class Saved(HonestLearner):
    """Weights and moments in one file."""

    def __init__(self, job: Job, by: Any) -> None:
        super().__init__(job)
        self.clock = by.clock

    def save(self, folder: Path) -> None:
        self.clock.spend(2.0**-4)
        (folder / "all.pickle").write_bytes(pickle.dumps((self._layers, self._descents)))

    def restore(self, folder: Path) -> None:
        self.clock.spend(2.0**-4)
        state = (folder / "all.pickle").read_bytes()
        self._layers, self._descents = pickle.loads(state)  # noqa: S301 (its own)


class LaidOut(Saved):
    """To save the weights of a step again takes half as long."""

    more_s = 2.0**-4

    def step(self, *batch: Any) -> Any:
        self.more_s = 2.0**-4
        return super().step(*batch)

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.clock.spend(self.more_s)
        self.more_s = 0.0


class InMemory(Saved):
    kept: ClassVar[dict[Path, bytes]] = {}

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.kept[folder] = (folder / "all.pickle").read_bytes()

    def restore(self, folder: Path) -> None:
        (folder / "all.pickle").write_bytes(self.kept[folder])
        super().restore(folder)


class SavedOnce(Saved):
    def save(self, folder: Path) -> None:
        self.clock.spend(2.0**-4)
        if not (folder / "all.pickle").exists():
            super().save(folder)


class RestoredOnce(Saved):
    done = False

    def restore(self, folder: Path) -> None:
        self.clock.spend(2.0**-4)
        if not self.done:
            super().restore(folder)
        self.done = True


class WeightsAlone(Saved):
    def restore(self, folder: Path) -> None:
        super().restore(folder)
        self._descents = [Descent(self.job.training.optimizer, array) for array in self.arrays]


class CoarseMoments(Saved):
    """Saved in bfloat16."""

    def save(self, folder: Path) -> None:
        own = [descent._moments for descent in self._descents]
        for descent, moments in zip(self._descents, own, strict=True):
            bits = (moments.astype(np.float32).view(np.uint32) + 0x8000) & np.uint32(0xFFFF0000)
            descent._moments = bits.view(np.float32).astype(np.float64)
        super().save(folder)
        for descent, moments in zip(self._descents, own, strict=True):
            descent._moments = moments


class _OfAYoungTraining(Saved):
    """Counts its steps since the last reset."""

    steps = 0

    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.steps = 0

    def step(self, *batch: Any) -> Any:
        self.steps += 1
        return super().step(*batch)


class SavedEarly(_OfAYoungTraining):
    def save(self, folder: Path) -> None:
        self.clock.spend(2.0**-4)
        if self.steps <= 2:
            super().save(folder)


class RestoredEarly(_OfAYoungTraining):
    def restore(self, folder: Path) -> None:
        self.clock.spend(2.0**-4)
        if self.steps <= 2:
            super().restore(folder)


checkpoints = pytest.mark.parametrize("workload", mlp.checkpoints, ids=lambda work: str(work.name))


@checkpoints
def test_a_checkpoint_is_recorded(workload: Any) -> None:
    """Weights and two moments in float64, and losses that are the same to the last bit."""
    facts = measured(Trainer(kind=Saved), workload)  # type: ignore[arg-type]
    assert 3 * 8 * 109_386 < facts["checkpoint_bytes"] < 3.1 * 8 * 109_386
    assert facts["checkpoint_sync_s"] >= 0
    assert facts["max_loss_deviation"] == 0.0
    assert "checked_steps" not in facts


def test_each_save_is_of_other_weights() -> None:
    """A step comes before it, outside its time."""
    facts = measured(Trainer(kind=LaidOut), mlp.checkpoints[0])  # type: ignore[arg-type]
    assert facts["completion_s"] == 2.0**-3


@checkpoints
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (InMemory, "other weights than were saved in its files"),
        (SavedOnce, "other weights than were saved in its files"),
        (RestoredOnce, "other weights than were saved in its files"),
        (WeightsAlone, "at step 2 the loss is .*, and the learner that was saved has"),
        (CoarseMoments, "3 steps move the weights by .* away in the learner that was restored"),
    ],
)
def test_a_checkpoint_that_does_not_restore_is_found(
    workload: Any, kind: Any, message: str
) -> None:
    """Weights that never left memory or stay in files or learners, lost and coarse moments."""
    fails(case(Trainer(kind=kind), workload), WrongTraining, message)


@pytest.mark.parametrize(
    ("workload", "kind"), [*zip(mlp.checkpoints, (SavedEarly, RestoredEarly), strict=True)]
)
def test_a_checkpoint_that_was_left_out_in_timed_calls_is_found(workload: Any, kind: Any) -> None:
    """All others follow on a reset: an interval of steps is then never over."""
    message = "in the last timed call: .*other weights than were saved in its files"
    fails(case(Trainer(kind=kind), workload), WrongTraining, message)


class Coarse(HonestLearner):
    """Answers with as few digits as float16 has; nobody trains by its answers."""

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        return np.float16(super().logits(examples)).astype(np.float32)


def test_answers_of_fewer_digits_are_refused() -> None:
    """The losses are right: they are means, which hardly show it."""
    job = Job(mlp, "cpu", "eager", "float32", 8)
    check(HonestLearner(job), CHECKED_STEPS)
    with pytest.raises(WrongResult, match=r"largest relative error 0\.000"):
        check(Coarse(job), CHECKED_STEPS)


class WithIdleBias(HonestLearner):
    """With a bias whose gradient is 0, but for rounding in the first steps."""

    moves = 1e-9

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.bias, self.left = np.zeros(3), 0

    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.bias, self.left = np.zeros(3), LOSSES_TIMED

    def step(self, examples: Any, labels: Any) -> Any:
        self.bias = self.bias + self.moves * (self.left > 0)
        self.left -= 1
        return super().step(examples, labels)

    def weights(self) -> Iterable[NDArray[Any]]:
        return [*super().weights(), self.bias]


@pytest.mark.parametrize("moves", [1e-9, 1e-3])
def test_arrays_that_rounding_moves_need_not_learn(
    monkeypatch: pytest.MonkeyPatch, moves: float
) -> None:
    """A convolution's bias before batch normalization is one; others must go on learning."""
    monkeypatch.setattr(WithIdleBias, "moves", moves)
    learner = WithIdleBias(Job(mlp, "cpu", "eager", "float32", 8))
    batches = [mlp.other_batch(8, 100 + step) for step in range(UPDATES_TIMED)]

    def train(batches: Sequence[Batch]) -> Sequence[Any]:
        return [learner.step(*learner.place(batch)) for batch in batches]

    idles = pytest.raises(WrongTraining, match="1 of 7 arrays of weights have stayed as they were")
    with idles if moves > 1e-6 else nullcontext():
        check_timed(learner, batches, train)


(_GPT,) = (step for step in MODELS if step.model == "gpt_small")
gpt_small = _GPT.at(_GPT.smallest)


class Mixed(HonestLearner):
    """The reference's layers in mixed precision, rounded at random.

    Args:
        planted: what becomes of a layer's function.
        scale: by which gradients are divided once more.
    """

    def __init__(self, job: Job, planted: Callable[..., Any], scale: float = 1.0) -> None:
        self.layers = partial(planted, Rounded(job.dtype, whole=at_random(7)).forward)
        self.scale = scale
        super().__init__(job)

    def place(self, batch: Batch) -> Placed:
        examples, labels = batch
        return (examples * 1.0 if self.job.training.vocabulary is None else examples), labels

    def step(self, examples: Any, labels: Any) -> Any:
        graph = self.job.training.graph
        logits, pull_backs = reference.answer(graph, self._layers, examples, self.layers)
        loss, of_logits = reference.cross_entropy(logits, labels)
        of_nodes = reference.accumulate(graph, pull_backs, of_logits)
        self.update([array / self.scale for arrays in of_nodes for array in arrays])
        return loss

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        (x, _) = self.place((examples, examples))
        layer = partial(gradients.untrained, trained=self.layers)
        return reference.inference(self.job.training.graph, self._layers, x, layer)


def honest(forward: Callable[..., Any], layer: Any, parameters: Any, *inputs: Any) -> Any:
    return forward(layer, parameters, *inputs)


def summed_in_float16(
    forward: Callable[..., Any], layer: Any, parameters: Any, *inputs: Any
) -> Any:
    """Products of dense layers, term by term."""
    result, back = forward(layer, parameters, *inputs)
    if isinstance(layer, layers.Dense):
        (x,), (kernel, bias) = inputs, parameters
        terms = np.float16(x)[..., None] * np.float16(kernel)
        result = np.cumsum(terms, axis=-2, dtype=np.float16)[..., -1, :] + bias
        result = np.maximum(result, 0.0) if layer.relu else result
    return result, back


def last_in_float8(forward: Callable[..., Any], layer: Any, parameters: Any, *inputs: Any) -> Any:
    """The layer of all classes, or of all words."""
    if isinstance(layer, layers.Dense) and layer.units in (10, 500, 1000):
        kernel, bias = parameters
        return forward(layer, [rounded(kernel, 3), bias], rounded(*inputs, 3))
    return forward(layer, parameters, *inputs)


def checked(training: Objective, dtype: str, *planted: Any) -> Any:
    job = Job(training, "cpu", "eager", dtype, 8 if training.vocabulary is None else 2)
    learner = Mixed(job, *planted)
    return check(learner, training.checked_steps)


networks_of_kinds = pytest.mark.parametrize(
    "training",
    [mlp, lenet, gpt_small, word_lm, googlenet_bn],
    ids=lambda training: str(training.name),
)


@networks_of_kinds
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision_is_held_against_an_emulation(training: Objective, dtype: str) -> None:
    """Another rounding, as a framework has it, passes; batch normalization amplifies it."""
    facts = checked(training, dtype, honest)
    nats = 1e-1 if training is googlenet_bn else 5e-2
    assert 0 < facts.max_loss_deviation < facts.loss_tolerance < nats


@networks_of_kinds
@pytest.mark.parametrize(
    ("dtype", "planted", "error"),
    [
        ("float16", (summed_in_float16,), VerificationError),
        ("float16", (honest, LOSS_SCALE), WrongTraining),
        ("float16", (last_in_float8,), VerificationError),
        ("bfloat16", (last_in_float8,), VerificationError),
    ],
    ids=["sums in float16", "dropped scale", "float8 in float16", "float8 in bfloat16"],
)
def test_less_than_mixed_precision_is_refused(
    training: Objective, dtype: str, planted: Any, error: type[VerificationError]
) -> None:
    """Sums in float16, gradients that were not scaled and are divided, and a layer in float8."""
    with pytest.raises(error):
        checked(training, dtype, *planted)
