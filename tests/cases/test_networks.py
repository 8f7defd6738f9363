"""Networks without an update as cases: answers, and loss and gradients, are the reference's."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.networks import ForwardBackwardCase, InferenceCase, compare_gradients
from fwbench.cases.references import compare_answers
from fwbench.errors import FwbenchError, WrongGradient, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job
from fwbench.terms.presets import Sizes
from fwbench.workloads import MODELS, lenet, sentiment_lstm
from fwbench.workloads.models import reference
from fwbench.workloads.models.gradients import forward, lstm, untrained
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.models.layers import LSTM, BatchNorm, Conv, Dense, Embedding, Flatten, Tokens
from fwbench.workloads.models.passes import ForwardBackward, Inference, Pass
from fwbench.workloads.training import Training
from support.fake_learner import FakeLearner, Trainer
from support.fakes import case_of, cell, fails, recorded, rounded

PICTURES = replace(
    lenet,
    name="small",
    network=sequential(Conv(3, 3), BatchNorm(), Flatten(), Dense(4, relu=False)),
    shape=(4, 4, 1),
    classes=4,
)
TEXTS = replace(
    sentiment_lstm,
    name="words",
    network=sequential(Embedding(7, 3), Tokens(), Dense(7, relu=False)),
    shape=(5,),
    classes=7,
)


class NetworkLearner(FakeLearner):
    """Answers and differentiates at the cost of a call, by the reference if it is honest.

    Attributes:
        infers: the logits of a batch.
        differentiates: the loss of a batch and its gradients.
    """

    infers: Callable[..., Any]
    differentiates: Callable[..., Any]

    def inference(self, examples: Any) -> Callable[[], Any]:
        return partial(self._spent, self.infers, examples)

    def forward_backward(self, examples: Any, labels: Any) -> Callable[[], Any]:
        return partial(self._spent, self.differentiates, examples, labels)

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        return [array for arrays in of_nodes for array in arrays]

    def _spent(self, function: Callable[..., Any], *batch: Any) -> Any:
        by = self.by
        by.clock.spend(by.dispatch_s)
        by.clock.enqueue(by.work_s)
        if not by.asynchronous:
            by.clock.wait()
        return function(self.job.training, *batch)


def answers(training: Training, examples: NDArray[Any]) -> NDArray[Any]:
    logits = reference.inference(training.graph, training.initial(), examples)
    return logits.astype(np.float32)


def gradients(
    training: Training, examples: NDArray[Any], labels: NDArray[Any]
) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """The right loss and gradients, rounded to float32."""
    loss, of_nodes = reference.gradients(training.graph, training.initial(), examples, labels)
    every = [array.astype(np.float32) for arrays in of_nodes for array in arrays]
    return np.float32(loss), every  # type: ignore[return-value]


def network(
    infers: Callable[..., Any] = answers,
    differentiates: Callable[..., Any] = gradients,
    **more: Any,
) -> Trainer:
    members = {"infers": staticmethod(infers), "differentiates": staticmethod(differentiates)}
    return Trainer(kind=type("Learner", (NetworkLearner,), members), **more)


KINDS: dict[type[Pass], Any] = {Inference: InferenceCase, ForwardBackward: ForwardBackwardCase}


def case(
    kind: type[Pass],
    framework: Trainer | None = None,
    training: Training = PICTURES,
    size: int = 8,
    dtype: str = "float32",
) -> Any:
    workload = kind(training.name, training, Sizes(quick=(size,)))
    (direction,) = workload.directions or ()
    tested_cell = cell(workload, size=size, direction=direction, dtype=dtype)
    return case_of(tested_cell, framework or network(), kind=KINDS[kind])


each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.suffix))


@each_kind
@pytest.mark.parametrize("training", [PICTURES, TEXTS], ids=lambda training: str(training.name))
@pytest.mark.parametrize("size", [1, 8, 24])
def test_what_the_reference_says_is_right(kind: type[Pass], training: Training, size: int) -> None:
    facts = recorded(case(kind, training=training, size=size))
    assert facts["parameters"] == training.parameters
    assert 0 < facts["max_relative_error"] < 1e-6
    allowed = {Inference: 2e-5, ForwardBackward: 2e-4 if training is PICTURES else 1e-4}
    assert facts["tolerance"] == allowed[kind]


def _rounded(bits: int) -> Callable[..., Any]:
    return lambda *arguments: rounded(answers(*arguments), bits)


@pytest.mark.parametrize(
    ("dtype", "bits"), [("float32", 23), ("float16", 10), ("bfloat16", 7), ("bfloat16", 10)]
)
def test_a_record_has_the_precision_of_answers(dtype: str, bits: int) -> None:
    """At most that of the dtype, which is what was asked for."""
    facts = recorded(case(Inference, network(infers=_rounded(bits)), dtype=dtype))
    assert facts["precision_bits"] == min(bits, {"float32": 23, "float16": 10}.get(dtype, 7))


@pytest.mark.parametrize(("error", "is_right"), [(4e-6, True), (2.0**-11, False)])
def test_recurrent_layers_pass_errors_on(error: float, is_right: bool) -> None:
    """States may be off by as much as an LSTM alone; TF32 makes more than is allowed."""
    (step,) = (step for step in MODELS if step.model == "word_lm")
    job = Job(step.at(step.smallest), "cpu", "eager", "float32", 4)
    ((tokens, _),) = job.training.check_batches(job.batch, 1)
    rng, around = np.random.default_rng(0), (1.0 - error, 1.0 + error)

    def off(layer: Any, parameters: Any, *inputs: Any) -> Any:
        if not isinstance(layer, LSTM):
            return forward(layer, parameters, *inputs)
        return lstm(parameters, *inputs, lambda x: x * rng.uniform(*around, x.shape))

    layer = partial(untrained, trained=off)
    logits = reference.inference(job.training.graph, job.training.initial(), tokens, layer)
    with nullcontext() if is_right else pytest.raises(WrongResult, match=r"6\.32e-05 is allowed"):
        assert compare_answers(job, tokens, logits)[0].largest > 2e-5


def test_a_record_has_throughput_cost_and_what_was_compiled() -> None:
    """Examples and tokens that went through in a second, by the median call."""
    framework = network(first_s=0.0, asynchronous=False, work_s=0.5, dispatch_s=0.0)
    facts = recorded(case(Inference, framework))
    assert (facts["workload"], facts["direction"]) == ("small_inference", "forward")
    assert facts["images_per_s"] == 8 / 0.5
    assert "compile_s" not in facts  # eager
    assert facts["flops"] == 2 * 8 * PICTURES.graph.multiply_adds
    framework = network(asynchronous=False, work_s=0.25, dispatch_s=0.0)
    facts = recorded(case(ForwardBackward, framework, TEXTS))
    assert (facts["workload"], facts["direction"]) == ("words_forward_backward", "backward")
    assert facts["tokens_per_s"] == 8 * 5 / 0.25
    assert "images_per_s" not in facts


def _in_training(training: Training, examples: NDArray[Any]) -> Any:
    return reference.answer(training.graph, training.initial(), examples)[0].astype(np.float32)


def _first_only() -> Callable[..., Any]:
    """Keeps the answers to the first batch."""
    first: list[Any] = []

    def kept_answers(*arguments: Any) -> Any:
        first[:] = first or [answers(*arguments)]
        return first[0]

    return kept_answers


def _less_and_less(calls: int) -> Callable[..., Any]:
    """Right for ``calls`` calls, and from then on zeros."""
    left = [None] * calls

    def fewer(training: Training, examples: NDArray[Any]) -> Any:
        right = answers(training, examples)
        if left:
            left.pop()
            return right
        return np.zeros_like(right)

    return fewer


@pytest.mark.parametrize(
    ("infers", "message"),
    [
        (_in_training, "the result is wrong: largest relative error"),
        (
            lambda *arguments: answers(*arguments)[::-1],
            "the result is wrong: largest relative error",
        ),
        (
            lambda *arguments: answers(*arguments)[:4],
            r"result has the shape \(4, 4\), the NumPy reference \(8,",
        ),
        (
            lambda *arguments: [answers(*arguments)] * 2,
            "the call returned 2 results, the NumPy reference 1",
        ),
        (_first_only(), "a call on changed inputs is wrong"),
        (_less_and_less(4), "the result of the last timed call is wrong"),
    ],
    ids=["statistics of the batch", "order", "half", "two", "kept", "less"],
)
def test_wrong_answers_fail(infers: Callable[..., Any], message: str) -> None:
    fails(case(Inference, network(infers=infers)), WrongResult, message)


def _changed(change: Callable[[list[Any]], list[Any]]) -> Callable[..., Any]:
    def changed(*arguments: Any) -> Any:
        loss, every = gradients(*arguments)
        return loss, change(every)

    return changed


def _kept_loss() -> Callable[..., Any]:
    """Computes the gradients in each call, and the loss in the first."""
    kept: list[Any] = []

    def kept_loss(*arguments: Any) -> Any:
        loss, every = gradients(*arguments)
        kept.append(loss)
        return kept[0], every

    return kept_loss


def _narrow(bits: int) -> Callable[..., Any]:
    """The gradients of a network whose images and kernels have so many bits behind the point.

    TF32 has ten, bfloat16 seven.
    """
    lost = 23 - bits

    def narrowed(array: NDArray[Any]) -> NDArray[Any]:
        whole = array.astype(np.float32).view(np.int32) + (1 << (lost - 1))
        return (whole >> lost << lost).view(np.float32).astype(np.float64)

    def narrow(training: Training, examples: NDArray[Any], labels: NDArray[Any]) -> Any:
        weights = [[narrowed(array) for array in arrays] for arrays in training.initial()]
        _, of_nodes = reference.gradients(training.graph, weights, narrowed(examples), labels)
        loss, _ = gradients(training, examples, labels)
        return loss, [array.astype(np.float32) for arrays in of_nodes for array in arrays]

    return narrow


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda every: every[:-1], "returned 5 gradients, for 6 inputs"),
        (
            lambda every: [*every[:-1], 0 * every[-1]],
            r"by parameter 5 of the shape \(4,\) is wrong: it has the norm 0, and that of the",
        ),
        (
            lambda every: [gradient / 2 for gradient in every],
            r"by parameter 0 .* is wrong: .* difference is 0\.5 of that, 0\.0002 is allowed",
        ),
        (lambda every: [*every[:-2], every[-2][::-1], every[-1]], "by parameter 4 .* is wrong"),
        (
            lambda every: [*every[:2], 1.05 * every[2], *every[3:]],
            r"by parameter 2 .* is wrong: .* difference is 0\.05 of that",
        ),
        (
            lambda every: [every[0].T, *every[1:]],
            r"gradient of input 0 has the shape \(3, 1, 3, 3\)",
        ),
    ],
    ids=["fewer", "left out", "half", "order", "5 % more", "layout"],
)
def test_wrong_gradients_fail(change: Callable[[list[Any]], list[Any]], message: str) -> None:
    fails(case(ForwardBackward, network(differentiates=_changed(change))), WrongGradient, message)


@pytest.mark.parametrize(
    ("differentiates", "error", "message"),
    [
        (
            lambda *arguments: gradients(*arguments)[1],
            WrongGradient,
            "returned a list, and not the loss",
        ),
        (_narrow(10), WrongGradient, "by parameter 0 .* is wrong"),
        (_narrow(7), WrongGradient, "by parameter 0 .* is wrong"),
        (
            lambda *arguments: (8 * gradients(*arguments)[0], gradients(*arguments)[1]),
            WrongResult,
            "the result is wrong",
        ),
        (_kept_loss(), WrongResult, "a call on changed inputs is wrong"),
    ],
    ids=["no loss", "TF32", "bfloat16", "sum of losses", "kept"],
)
def test_wrong_losses_and_narrow_gradients_fail(
    differentiates: Callable[..., Any], error: type[FwbenchError], message: str
) -> None:
    fails(case(ForwardBackward, network(differentiates=differentiates)), error, message)


@each_kind
def test_another_network_fails(kind: type[Pass]) -> None:
    fails(case(kind, network(too_many=1)), WrongTraining, "the model trains .* another model")


@each_kind
def test_work_that_changes_its_batch_fails(kind: type[Pass]) -> None:
    def changing(right: Callable[..., Any]) -> Callable[..., Any]:
        def changed(training: Training, *batch: NDArray[Any]) -> Any:
            result = right(training, *batch)
            batch[0][:] = batch[0][::-1]
            return result

        return changed

    framework = network(infers=changing(answers), differentiates=changing(gradients))
    fails(case(kind, framework), WrongResult, "the work changed input 0")


def test_gradients_that_vanish_are_right() -> None:
    zeros = np.zeros((2, 3))
    same = partial(list, [zeros])
    assert compare_gradients([zeros], [zeros], 1e-9, same) == (0.0, 1e-9)
    with pytest.raises(WrongGradient, match=r"the norm 0\.002449.*, and that of .* reference 0;"):
        compare_gradients([zeros + 1e-3], [zeros], 1e-4, same)


def test_what_choices_between_equal_elements_make_of_a_gradient_is_allowed() -> None:
    """Where they make something of it: that of another parameter has its bound, and no more."""
    right = [np.ones(4), np.ones(4)]
    chosen = [np.array([1.0, 1.0, 1.0, 1.1]), np.ones(4)]
    error, allowed = compare_gradients(chosen, right, 1e-4, lambda: chosen)
    assert (error, allowed) == pytest.approx((0.05, 0.1001))
    with pytest.raises(WrongGradient, match=r"by parameter 1 .* is 0\.05 of that, 0\.0001 is"):
        compare_gradients([chosen[1], chosen[0]], right, 1e-4, lambda: chosen)
