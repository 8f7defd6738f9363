"""The NumPy training reference: every gradient, every update, and the losses that are stored."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.errors import DeclarationError, UsageError
from fwbench.packaged import read_table
from fwbench.workloads import TRAININGS, cast_bfloat16, gru, lenet, mlp, sentiment_lstm
from fwbench.workloads.models import reference
from fwbench.workloads.models.gradients import Rounded, forward
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layer import Layer, Value
from fwbench.workloads.models.layers import (
    GRU,
    LSTM,
    Add,
    Attention,
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    Gelu,
    GlobalAveragePool,
    LayerNorm,
    MaxPool,
    Positions,
    Relu,
)
from fwbench.workloads.models.reference import Descent
from fwbench.workloads.models.trajectories import expected_losses
from fwbench.workloads.training import TRAJECTORY_STEPS, Adam, RMSprop, Training
from support import programs
from support.verification import installed

_BATCH = 2

each_layer = pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Conv(3, 3), (5, 4, 2)),
        (Conv(3, 3, same=True), (4, 5, 2)),
        (Conv(2, 2, same=True), (3, 4, 1)),
        (Conv(2, 1), (3, 3, 2)),
        (Conv(2, 3, stride=2, padding=1), (6, 5, 2)),
        (Conv(2, (1, 3), stride=2, padding=(0, 1), relu=False, bias=False), (4, 5, 1)),
        (AveragePool(), (5, 4, 2)),
        (AveragePool(3), (6, 7, 1)),
        (AveragePool(3, 1, 1), (4, 3, 2)),
        (MaxPool(), (5, 4, 2)),
        (MaxPool(3), (6, 7, 1)),
        (MaxPool(3, 2, 1), (6, 5, 2)),
        (GlobalAveragePool(), (3, 2, 4)),
        (BatchNorm(), (3, 2, 2)),
        (Relu(), (3, 2)),
        (Dense(4), (2, 3)),
        (Flatten(), (2, 3, 2)),
        (Dense(4), (3,)),
        (Dense(4, relu=False), (3,)),
        (Dropout(0.5), (3,)),
        (Embedding(5, 3), (4,)),
        (LSTM(3), (4, 2)),
        (LSTM(3, sequences=True), (4, 2)),
        (GRU(3), (4, 2)),
        (GRU(3, sequences=True), (4, 2)),
        (Positions(), (3, 2)),
        (LayerNorm(), (3, 4)),
        (Gelu(), (3, 2)),
        (Attention(2), (3, 12)),
        (Attention(2, causal=True), (3, 12)),
    ],
    ids=str,
)


def _drawn(layer: Layer, shape: tuple[int, ...]) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Parameters, none of them zero, and an input."""
    rng = np.random.default_rng(1)
    parameters = [rng.standard_normal(weight.shape) for weight in layer.weights(shape)]
    if isinstance(layer, Embedding):
        return parameters, rng.integers(0, layer.vocabulary, (_BATCH, *shape))
    return parameters, rng.standard_normal((_BATCH, *shape))


def _difference(function: Callable[[], float], array: NDArray[Any]) -> NDArray[Any]:
    """The central difference of a function of what is in an array."""
    step = 1e-6
    result = np.empty_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + step
        above = function()
        array[place] = kept - step
        result[place] = (above - function()) / (2 * step)
        array[place] = kept
    return result


@each_layer
def test_the_result_has_the_shape_that_the_layer_says(layer: Layer, shape: tuple[int, ...]) -> None:
    """Also the gradients have the shapes of what they are gradients of."""
    parameters, x = _drawn(layer, shape)
    result, backward = forward(layer, parameters, x)
    (of_x,), gradients = backward(np.ones_like(result))
    assert result.shape == (_BATCH, *layer.output(shape))
    assert of_x.shape == x.shape
    assert [array.shape for array in gradients] == [array.shape for array in parameters]


@each_layer
def test_gradients_are_the_central_differences(layer: Layer, shape: tuple[int, ...]) -> None:
    """Differences of a weighted sum of the result, for the input and every parameter."""
    parameters, x = _drawn(layer, shape)
    result, backward = forward(layer, parameters, x)
    weights = np.random.default_rng(2).standard_normal(result.shape)
    (of_x,), gradients = backward(weights)

    def weighted() -> float:
        return float((weights * forward(layer, parameters, x)[0]).sum())

    variables = [*parameters] if isinstance(layer, Embedding) else [x, *parameters]
    gradients = gradients if isinstance(layer, Embedding) else [of_x, *gradients]
    for variable, gradient in zip(variables, gradients, strict=True):
        np.testing.assert_allclose(gradient, _difference(weighted, variable), rtol=1e-6, atol=1e-7)


def _branches(x: Value) -> Value:
    """A result that is used three times, twice by one layer."""
    once = Conv(2, 3, same=True)(x)
    double = Add()(once, once)
    return Dense(3, relu=False)(Flatten()(Concat()(double, Relu()(BatchNorm()(once)), x)))


def test_gradients_of_branches_are_the_central_differences() -> None:
    """Where a result has several uses its gradient is the sum over them."""
    training = replace(lenet, network=_branches, shape=(4, 3, 1), classes=3)
    parameters = training.initial()
    ((x, labels),) = training.check_batches(2, 1)

    def loss() -> float:
        return reference.gradients(training.graph, parameters, x, labels)[0]

    _, of_nodes = reference.gradients(training.graph, parameters, x, labels)
    for arrays, gradients in zip(parameters, of_nodes, strict=True):
        for array, gradient in zip(arrays, gradients, strict=True):
            np.testing.assert_allclose(gradient, _difference(loss, array), rtol=1e-5, atol=1e-8)


def test_the_loss_is_the_cross_entropy_and_its_gradient_the_difference() -> None:
    """Also of logits so large that their exponentials are not finite."""
    logits = np.random.default_rng(3).standard_normal((3, 4))
    labels = np.array([2, 0, 2])
    loss, gradient = reference.cross_entropy(logits, labels)
    shares = [
        math.exp(row[k]) / sum(map(math.exp, row)) for row, k in zip(logits, labels, strict=True)
    ]
    assert loss == pytest.approx(-sum(map(math.log, shares)) / 3, rel=1e-14)
    slopes = _difference(lambda: reference.cross_entropy(logits, labels)[0], logits)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-9)
    assert reference.cross_entropy(logits + 1e4, labels)[0] == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize(("size", "same", "before"), [(3, False, 0), (3, True, 1), (2, True, 0)])
def test_convolution_is_the_naive_loop(size: int, same: bool, before: int) -> None:
    """Valid, and with zeros around: of an even kernel, the odd one comes last."""
    layer = Conv(3, size, same=same)
    (kernel, bias), x = _drawn(layer, (4, 5, 2))
    result, _ = forward(layer, [kernel, bias], x)
    expected = np.empty_like(result)
    for image, row, column, filter_ in np.ndindex(expected.shape):
        total = bias[filter_]
        for down, across in itertools.product(range(size), repeat=2):
            at_row, at_column = row + down - before, column + across - before
            if 0 <= at_row < 4 and 0 <= at_column < 5:
                total += x[image, at_row, at_column] @ kernel[down, across, :, filter_]
        expected[image, row, column, filter_] = max(total, 0.0)
    assert (expected > 0).any()
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize(("layer", "reduce"), [(AveragePool(2), np.mean), (MaxPool(2), np.max)])
def test_pools_are_the_naive_loop(layer: Layer, reduce: Callable[..., Any]) -> None:
    _, x = _drawn(layer, (5, 4, 2))
    result, _ = forward(layer, [], x)
    for image, row, column, channel in np.ndindex(result.shape):
        square = x[image, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, channel]
        assert result[image, row, column, channel] == pytest.approx(reduce(square), rel=1e-14)


def test_flattening_keeps_channels_last() -> None:
    x = np.arange(12.0).reshape(1, 2, 3, 2)
    assert forward(Flatten(), [], x)[0][0].tolist() == [*range(12)]


def test_the_lstm_is_the_naive_loop() -> None:
    """Number by number, with the gates in the order input, forget, cell, output."""
    units, length = 3, 4
    (kernel, recurrent, bias), x = _drawn(LSTM(units), (length, 2))
    result, _ = forward(LSTM(units), [kernel, recurrent, bias], x)
    at_every_place, _ = forward(LSTM(units, sequences=True), [kernel, recurrent, bias], x)

    def sigmoid(z: float) -> float:
        return 1.0 / (1.0 + math.exp(-z))

    for example in range(_BATCH):
        cell, output = [0.0] * units, [0.0] * units
        for place, now in enumerate(x[example]):
            z = [
                sum(a * b for a, b in zip(now, kernel[:, k], strict=True))
                + sum(a * b for a, b in zip(output, recurrent[:, k], strict=True))
                + bias[k]
                for k in range(4 * units)
            ]
            for k in range(units):
                forgotten = sigmoid(z[units + k]) * cell[k]
                cell[k] = forgotten + sigmoid(z[k]) * math.tanh(z[2 * units + k])
                output[k] = sigmoid(z[3 * units + k]) * math.tanh(cell[k])
            np.testing.assert_allclose(at_every_place[example, place], output, rtol=1e-12)
        np.testing.assert_allclose(result[example], output, rtol=1e-12)


def test_the_gru_is_the_operation() -> None:
    """The one that the frameworks' own layers are verified against, of the same gates."""
    (kernel, recurrent, biases), x = _drawn(GRU(3, sequences=True), (4, 2))
    result, _ = forward(GRU(3, sequences=True), [kernel, recurrent, biases], x)
    expected = gru.reference(x, kernel, recurrent, *biases, 3)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


#: With these, and gradients of 2 and then 1, both moments are 1 after either step.
_ADAM = Adam(learning_rate=1.0, beta_1=0.5, beta_2=0.75, epsilon=0.5)

#: By step: sqrt(1 - 0.75**t) / (1 - 0.5**t) * 1 / (sqrt(1) + 0.5).
_ADAM_DECREASES = {1: 2 / 3, 2: 0.5879447357921312, 3: 0.5793107171712589}


def test_adam_by_hand() -> None:
    """Two steps, epsilon added to the root of the second moment as it is."""
    weights = np.array([10.0])
    descent = Descent(_ADAM, weights)
    descent.step(np.array([2.0]))
    assert weights[0] == pytest.approx(10 - _ADAM_DECREASES[1], rel=1e-14)
    descent.step(np.array([1.0]))
    assert weights[0] == pytest.approx(10 - _ADAM_DECREASES[1] - _ADAM_DECREASES[2], rel=1e-14)


def test_rmsprop_by_hand() -> None:
    """Two steps, both with a mean square of 1; epsilon is inside the root."""
    weights = np.array([10.0])
    descent = Descent(RMSprop(learning_rate=1.0, rho=0.75, epsilon=3.0), weights)
    descent.step(np.array([2.0]))
    assert weights[0] == 10 - 2 / 2
    descent.step(np.array([1.0]))
    assert weights[0] == 10 - 2 / 2 - 1 / 2


def test_lazy_adam_by_hand() -> None:
    """A row that does not occur keeps weights and moments, and all steps count."""
    weights = np.full((3, 1), 10.0)
    descent = Descent(_ADAM, weights)
    gradients = [[2.0], [2.0], [2.0]]
    descent.step(np.array(gradients), np.array([0]))
    assert weights.ravel() == pytest.approx([10 - _ADAM_DECREASES[1], 10, 10], rel=1e-14)
    descent.step(np.array(gradients), np.array([1]))
    assert weights.ravel() == pytest.approx(
        [10 - _ADAM_DECREASES[1], 10 - _ADAM_DECREASES[2], 10], rel=1e-14
    )
    descent.step(np.array([[1.0], [5.0], [5.0]]), np.array([0]))
    assert weights.ravel() == pytest.approx(
        [10 - _ADAM_DECREASES[1] - _ADAM_DECREASES[3], 10 - _ADAM_DECREASES[2], 10], rel=1e-14
    )


def test_a_row_that_occurs_moves_without_a_gradient() -> None:
    """By its first moment, which only what occurs loses a share of."""
    weights = np.full((2, 1), 10.0)
    descent = Descent(_ADAM, weights)
    descent.step(np.array([[2.0], [2.0]]))
    before = weights.copy()
    descent.step(np.zeros((2, 1)), np.array([1]))
    assert weights[0] == before[0]
    assert weights[1] < before[1]


def _texts(vocabulary: int) -> Training:
    small = sequential(Embedding(vocabulary, 3), LSTM(2), Dense(2, relu=False))
    return replace(sentiment_lstm, network=small, shape=(4,))


def test_lazy_updates_differ_from_the_third_loss_on() -> None:
    """The first step has no moments of rows that do not occur; the second one has."""
    dense, lazy = (reference.losses(_texts(9), 2, 4, update) for update in ("dense", "lazy"))
    assert lazy[:2] == dense[:2]
    assert lazy[2:] != pytest.approx(dense[2:], rel=1e-9)


def test_lazy_updates_make_no_difference_where_every_token_occurs() -> None:
    """A vocabulary of 2 has one token beside the padding, and models of images have none."""
    for training in (_texts(2), mlp):
        dense = reference.losses(training, 2, 4)
        assert reference.losses(training, 2, 4, "lazy") == pytest.approx(dense, rel=1e-14)


def test_squares_of_slices_by_hand() -> None:
    """Two slices of 2 each: a gradient of 4, and squares of 8 instead of 16."""
    weights = np.array([10.0])
    Descent(_ADAM, weights).step(np.array([4.0]), squares=np.array([8.0]))
    assert weights[0] == pytest.approx(10 - 2 / (math.sqrt(2) + 0.5), rel=1e-14)


def test_squares_of_slices_make_a_difference_where_tokens_occur_twice() -> None:
    """All of them do in a batch that repeats its examples."""
    training = _texts(9)
    dense, slices = (reference.losses(training, 8, 4, update) for update in ("dense", "slices"))
    assert slices[0] == dense[0]
    assert slices[1:] != pytest.approx(dense[1:], rel=1e-6)
    repeated = reference.losses(training, 32, 4, "slices")
    assert repeated[1:] != pytest.approx(slices[1:], rel=1e-6)
    assert repeated == pytest.approx(reference.losses(training, 8, 4, "slices", 4), rel=1e-12)


@pytest.mark.parametrize(("batch", "rows"), [(16, 8), (12, 4), (6, 2), (3, 1)])
def test_a_batch_that_repeats_its_examples_has_their_losses(batch: int, rows: int) -> None:
    alone = reference.losses(lenet, rows, 5)
    assert reference.losses(lenet, batch, 5) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(("batch", "replicas"), [(32, 2), (48, 3), (12, 6)])
def test_replicas_normalize_by_their_shares(batch: int, replicas: int) -> None:
    """The whole batch has other losses; a smaller one that is cut alike has the same."""
    normalized = replace(mlp, network=sequential(Flatten(), Dense(4), BatchNorm(), Dense(10)))
    shared = reference.losses(normalized, batch, 4, replicas=replicas)
    assert shared != pytest.approx(reference.losses(normalized, batch, 4), rel=1e-3)
    assert expected_losses(normalized, batch, update="dense", replicas=replicas)[:4] == (
        pytest.approx(shared, rel=1e-9)
    )
    least, parts = normalized.reduced(batch, replicas)
    assert (least <= batch, parts) == (True, replicas)


@pytest.mark.parametrize("update", ["dense", "lazy", "slices"])
def test_what_is_not_normalized_is_shared_as_one(update: str) -> None:
    alone = reference.losses(_texts(9), 8, 4, update)
    assert reference.losses(_texts(9), 8, 4, update, replicas=2) == pytest.approx(alone, rel=1e-12)


def test_losses_begin_anew_each_time() -> None:
    assert reference.losses(mlp, 4, 3) == reference.losses(mlp, 4, 5)[:3]


def test_steps_that_the_check_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match="21 steps; the check has 20"):
        reference.losses(mlp, 1, TRAJECTORY_STEPS + 1)


def test_what_has_no_reference_is_named() -> None:
    """A layer or an optimiser that was added to the models alone."""

    class Swish(Layer):
        pass

    with pytest.raises(DeclarationError, match=r"no reference for .*Swish.*; add its own .* LSTM"):
        forward(Swish(), [], np.zeros((1, 2)))
    with pytest.raises(DeclarationError, match=r"no reference for 'sgd'; .* Adam, RMSprop"):
        Descent("sgd", np.zeros(1))  # type: ignore[arg-type]


def _stored() -> dict[str, Any]:
    return dict(read_table("fwbench.workloads.models", "trajectories.json"))


def test_every_training_loop_has_its_trajectories() -> None:
    """For each number of different examples, and lazy where gradients can be sparse."""
    stored = _stored()
    assert {*stored} == {training.name for training in TRAININGS}
    for training in TRAININGS:
        lazy = {"lazy"} if "sparse" in training.toggles else set()
        assert {*stored[training.name]} == {"dense", *lazy}
        for by_rows in stored[training.name].values():
            assert [*by_rows] == ["1", "2", "4", "8"]
            assert {len(losses) for losses in by_rows.values()} == {TRAJECTORY_STEPS}


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: str(training.name))
def test_stored_trajectories_are_those_of_the_reference(training: Training) -> None:
    """All steps of the small models, and the first ones of the others.

    Where this fails after a change that was meant: python scripts/trajectories.py
    """
    steps = TRAJECTORY_STEPS if training in (lenet, mlp) else 3
    for update, by_rows in _stored()[training.name].items():
        for rows, losses in by_rows.items():
            result = reference.losses(training, int(rows), steps, update)
            assert result == pytest.approx(losses[:steps], rel=1e-9), (update, rows)


def test_lenet_has_the_losses_of_pytorch() -> None:
    """In float64, with PyTorch's own convolutions, pools, loss and gradients."""
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    training = lenet
    parameters = training.graph.channels_first(training.initial())
    weights = [torch.tensor(array, requires_grad=True) for arrays in parameters for array in arrays]
    descents = [Descent(training.optimizer, weight.detach().numpy()) for weight in weights]
    results = []
    for x, labels in training.check_batches(8, 5):
        now = torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2)
        for k in (0, 2):
            now = f.avg_pool2d(f.conv2d(now, weights[k], weights[k + 1]).relu(), 2)
        now = now.flatten(1)
        for k in (4, 6):
            now = f.linear(now, weights[k], weights[k + 1]).relu()
        loss = f.cross_entropy(f.linear(now, *weights[8:]), torch.tensor(labels).long())
        results.append(loss.item())
        for descent, gradient in zip(descents, torch.autograd.grad(loss, weights), strict=True):
            descent.step(gradient.numpy())
    assert results == pytest.approx(reference.losses(training, 8, 5), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision_rounds_as_the_dtype_does(dtype: str) -> None:
    """To the nearest, small float16 with fewer digits; scaled, it has more; tokens stay."""
    numbers = np.random.default_rng(0).standard_normal(1_000) * 2.0 ** np.arange(-37, 3).repeat(25)
    single = numbers.astype(np.float32)
    cast = {"float16": np.float16, "bfloat16": cast_bfloat16.reference}[dtype]
    (found,) = Rounded(dtype).rounded([single])
    np.testing.assert_array_equal(found, cast(single))
    (scaled,) = Rounded(dtype).rounded([single], scale=2.0**10)
    np.testing.assert_array_equal(scaled, cast(single * 2**10).astype(float) / 2**10)
    tokens = np.arange(3_000, dtype=np.int32)
    assert Rounded(dtype).rounded([tokens])[0] is tokens


#: In a process of its own: TensorFlow may crash in one that PyTorch has computed in.
_SPARSE = """
import json
from fwbench.frameworks.learner import Job
from fwbench.frameworks.tensorflow.training import TensorFlowLearner
from test_reference import _texts

texts = _texts(20)
learner = TensorFlowLearner(Job(texts, "cpu", "graph", "float32", 64, sparse=True))
learner.reset(exact=True)
batches = texts.check_batches(64, 4)
losses = learner.losses([learner.step(*learner.place(batch)) for batch in batches])
print(json.dumps([[float(loss) for loss in losses], learner.notes()["update"]]))
"""


@installed("tensorflow")
def test_sparse_updates_are_those_of_keras() -> None:
    """In a batch that repeats its examples, which squares of slices depend on."""
    texts = _texts(20)
    here = Path(__file__).parent
    found = {"PYTHONPATH": str(here.parent)}
    results, update = programs.result("-c", _SPARSE, cwd=here, variables=found)
    assert results == pytest.approx(expected_losses(texts, 64, update=update)[:4], rel=1e-6)
    assert results != pytest.approx(expected_losses(texts, 64, update="dense")[:4], rel=1e-5)
