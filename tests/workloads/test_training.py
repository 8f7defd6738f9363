"""Layers, models and their data: the same numbers for every framework, in every process."""

import numpy as np
import pytest

from fwbench.terms.presets import PRESETS
from fwbench.workloads import TRAININGS, cifar_cnn, lenet, mlp, sentiment_gru, sentiment_lstm
from fwbench.workloads.models.graph import sequential, trace
from fwbench.workloads.models.layer import Layer
from fwbench.workloads.models.layers import (
    GRU,
    LSTM,
    AveragePool,
    Conv,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    MaxPool,
)
from fwbench.workloads.training import CHECKED_STEPS, TRAJECTORY_STEPS, Training, check_rows, order

each_training = pytest.mark.parametrize(
    "training", TRAININGS, ids=lambda training: str(training.name)
)


@pytest.mark.parametrize(
    ("training", "parameters"),
    [
        (lenet, 60_170),
        (cifar_cnn, 1_250_858),
        (mlp, 109_386),
        # The table, both kernels of the LSTM and its one bias, the dense layer.
        (sentiment_lstm, 5_000 * 100 + 2 * 100 * 400 + 400 + 100 * 2 + 2),
        (sentiment_gru, 5_000 * 100 + 2 * 100 * 300 + 2 * 300 + 100 * 2 + 2),
    ],
    ids=lambda workload: getattr(workload, "name", None),
)
def test_models_have_as_many_parameters_as_published(training: Training, parameters: int) -> None:
    """The number of parameters tells most variants of a model apart."""
    assert training.parameters == parameters


@pytest.mark.parametrize(
    ("layer", "before", "after"),
    [
        (Conv(6, 5), (28, 28, 1), (24, 24, 6)),
        (Conv(32, 3, same=True), (32, 30, 3), (32, 30, 32)),
        (AveragePool(), (11, 10, 16), (5, 5, 16)),
        (MaxPool(3), (10, 9, 2), (3, 3, 2)),
        (Flatten(), (5, 5, 16), (400,)),
        (Dense(120), (400,), (120,)),
        (Dropout(0.25), (15, 15, 32), (15, 15, 32)),
        (Embedding(5_000, 100), (500,), (500, 100)),
        (LSTM(20), (500, 100), (20,)),
    ],
    ids=str,
)
def test_layers_know_the_shape_of_their_results(
    layer: Layer, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    assert layer.output(before) == after


@each_training
def test_models_end_in_a_logit_for_each_class(training: Training) -> None:
    """The last layer has them, without a ReLU."""
    assert training.graph.output == (training.classes,)
    last = training.graph.nodes[-1].layer
    assert isinstance(last, Dense)
    assert not last.relu


@each_training
def test_every_schedule_has_epochs_that_count(training: Training) -> None:
    """An epoch is left after those of the warm-up, in presets that there are."""
    assert {*training.schedules} <= {*PRESETS}
    for schedule in training.schedules.values():
        assert schedule.epochs > schedule.warmup_epochs > 0
        assert schedule.repetitions > 0


@each_training
def test_initial_weights_are_the_same_each_time_and_in_float32(training: Training) -> None:
    """A framework that trains in float32 begins with exactly these numbers."""
    first, second = training.initial(), training.initial()
    for node, weights, other in zip(training.graph.nodes, first, second, strict=True):
        assert [array.shape for array in weights] == [weight.shape for weight in node.weights]
        for a, b in zip(weights, other, strict=True):
            assert a.dtype == np.float64
            assert a is not b
            assert (a == b).all()
            assert (a == a.astype(np.float32)).all()


def test_kernels_are_within_the_limit_of_glorot_and_biases_zero() -> None:
    """Each place of a convolution's kernel counts for both fans."""
    ((kernel, bias),) = trace(Conv(16, 3), (12, 12, 6)).initial(seed=0)
    limit = np.sqrt(6 / (9 * (6 + 16)))
    assert 0.9 * limit < np.abs(kernel).max() <= limit
    assert not bias.any()


def test_an_lstm_begins_by_remembering() -> None:
    """The bias of its forget gates, the second of four, is 1."""
    ((*_, bias),) = trace(LSTM(3), (4, 2)).initial(seed=0)
    assert bias.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_channels_first_moves_the_rows_after_a_flatten_alone() -> None:
    """The dense layer gives the same for an image whose channels come first."""
    shape = (3, 2, 4)
    network = sequential(Dropout(0.5), Flatten(), Dropout(0.5), Dense(5), Dense(2))
    graph = trace(network, shape)
    parameters = graph.initial(seed=1)
    (_, _, _, (kernel, bias), others) = graph.channels_first(parameters)
    x = np.random.default_rng(2).random((6, *shape))
    last, first = x.reshape(6, -1), x.transpose(0, 3, 1, 2).reshape(6, -1)
    np.testing.assert_allclose(first @ kernel.T, last @ parameters[3][0], rtol=1e-12)
    assert bias is parameters[3][1]
    np.testing.assert_array_equal(others[0], parameters[4][0].T)
    assert others[1] is parameters[4][1]


def test_channels_first_has_outputs_first_and_a_second_bias() -> None:
    """Kernels of convolutions and LSTMs, as PyTorch and MXNet lay them out."""
    graph = trace(Conv(3, 2), (5, 5, 4))
    parameters = graph.initial(seed=1)
    ((kernel, _),) = graph.channels_first(parameters)
    assert kernel.shape == (3, 4, 2, 2)
    assert kernel[2, 3, 0, 1] == parameters[0][0][0, 1, 3, 2]
    graph = trace(LSTM(3), (7, 2))
    ((inputs, recurrent, bias, second),) = graph.channels_first(graph.initial(seed=1))
    assert (inputs.shape, recurrent.shape, bias.shape) == ((12, 2), (12, 3), (12,))
    assert second.tolist() == [0.0] * 12
    graph = trace(GRU(1), (7, 2))
    (arrays,) = graph.channels_first(
        [[np.array([[1, 2, 3]])] * 2 + [np.array([[4, 5, 6], [7, 8, 9]])]]
    )
    assert [array.ravel().tolist() for array in arrays] == [
        [2, 1, 3],
        [2, 1, 3],
        [5, 4, 6],
        [8, 7, 9],
    ]


def test_what_an_example_counts_for() -> None:
    assert (lenet.vocabulary, lenet.unit) == (None, "images")
    assert lenet.units_per_example == 1
    assert (sentiment_lstm.vocabulary, sentiment_lstm.unit) == (5_000, "tokens")
    assert sentiment_lstm.units_per_example == 500


@pytest.mark.parametrize(
    ("batch", "rows"),
    [(1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (8, 8), (12, 4), (32, 8), (64, 8), (100, 4), (200, 8)],
)
def test_as_many_different_examples_as_divide_the_batch(batch: int, rows: int) -> None:
    """At most 8, so that few trajectories serve all batch sizes."""
    assert check_rows(batch) == rows


@each_training
@pytest.mark.parametrize("batch", [1, 6, 24])
def test_a_batch_of_the_check_repeats_its_examples(training: Training, batch: int) -> None:
    """The same examples and labels as in the smallest batch that has as many different ones."""
    rows = check_rows(batch)
    batches = training.check_batches(batch, 3)
    assert len(batches) == 3
    for (x, y), (few, labels) in zip(batches, training.check_batches(rows, 3), strict=True):
        assert (x.shape, y.shape) == ((batch, *training.shape), (batch,))
        same = [(x == example).reshape(batch, -1).all(axis=1) for example in few]
        repeated = [np.flatnonzero(rows_of_one) for rows_of_one in same]
        assert [len(places) for places in repeated] == [batch // rows] * rows
        for places, label in zip(repeated, labels, strict=True):
            assert (y[places] == label).all()


@pytest.mark.parametrize("part", [slice(100), slice(None, None, 2), slice(1, None, 2), slice(20)])
def test_a_part_of_a_batch_of_the_check_has_another_mean(part: slice) -> None:
    """So a learner that leaves out half of a batch, or nine tenths, has other losses."""
    for x, _ in mlp.check_batches(200, CHECKED_STEPS):
        _, counts = np.unique(x[part].reshape(-1, 784), axis=0, return_counts=True)
        assert len(counts) < 8 or np.ptp(counts) > 1


def test_fewer_batches_of_the_check_are_its_first() -> None:
    """In the same order: no more are drawn than are asked for, whose pictures may be large."""
    few, many = mlp.check_batches(16, 2), mlp.check_batches(16, TRAJECTORY_STEPS)
    assert len(few) == 2
    for batch, same in zip(few, many, strict=False):
        for array, expected in zip(batch, same, strict=True):
            np.testing.assert_array_equal(array, expected)


@each_training
def test_batches_of_the_check_are_data_that_could_be(training: Training) -> None:
    """Types and ranges of the data sets, and no batch twice."""
    batches = training.check_batches(8, TRAJECTORY_STEPS)
    assert len({x.tobytes() for x, _ in batches}) == TRAJECTORY_STEPS
    least, dtype = (0, np.float32) if training.vocabulary is None else (1, np.int32)
    for x, y in batches:
        assert (x.dtype, y.dtype) == (dtype, np.int32)
        assert least <= x.min() <= x.max() < (training.vocabulary or 1)
        assert 0 <= y.min() <= y.max() < training.classes


def test_the_order_is_a_permutation_that_changes_with_epoch_and_repetition() -> None:
    orders = {
        (repetition, epoch): order(100, repetition, epoch).tolist()
        for repetition in range(2)
        for epoch in range(2)
    }
    for (repetition, epoch), epoch_order in orders.items():
        assert sorted(epoch_order) == [*range(100)]
        assert order(100, repetition, epoch).tolist() == epoch_order
    assert len({*map(tuple, orders.values())}) == len(orders)


def test_the_order_is_the_same_in_every_process() -> None:
    """Each framework draws it in its own; so these are numbers, not a second drawing."""
    assert order(8, 0, 0).tolist() == [5, 0, 4, 1, 6, 3, 7, 2]
    assert order(8, 1, 2).tolist() == [4, 7, 3, 5, 2, 1, 0, 6]


@pytest.mark.parametrize(("batch", "replicas"), [(16, 2), (192, 3), (12, 2), (32, 16)])
def test_shares_differ_and_together_are_the_batch(batch: int, replicas: int) -> None:
    """A replica that exchanges nothing learns from other examples than all together."""
    wholes = lenet.check_batches(batch, 2)
    shards = [lenet.check_shards(batch, 2, replicas, rank) for rank in range(replicas)]
    for step, (examples, labels) in enumerate(wholes):
        x = np.concatenate([shard[step][0] for shard in shards])
        y = np.concatenate([shard[step][1] for shard in shards])
        assert sorted(map(hash, map(bytes, x))) == sorted(map(hash, map(bytes, examples)))
        assert sorted(y) == sorted(labels)
        means = [shard[step][0].mean() for shard in shards]
        assert max(means) - min(means) > 1e-3


def test_labels_of_shares_are_those_of_their_examples() -> None:
    ((examples, labels),) = lenet.check_batches(16, 1)
    label_of = dict(zip(map(bytes, examples), labels, strict=True))
    for rank in range(2):
        ((x, y),) = lenet.check_shards(16, 1, 2, rank)
        assert [label_of[bytes(example)] for example in x] == [*y]
