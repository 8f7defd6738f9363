"""Weights at which no rounding decides on a ReLU, and choices between equal elements."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.workloads import MODELS, lenet, mlp
from fwbench.workloads.models import stable_weights as module
from fwbench.workloads.models.gradients import forward
from fwbench.workloads.models.layers import Add, BatchNorm, Conv, Dense, Flatten, MaxPool, Relu
from fwbench.workloads.models.reference import gradients
from fwbench.workloads.models.stable_weights import (
    different,
    tie_breaks_flipped,
    with_stable_weights,
)
from fwbench.workloads.objective import SGD, Objective

_SMALL = ("alexnet", "googlenet_bn", "resnet50")


def _rectified(objective: Objective, batch: int) -> list[NDArray[Any]]:
    """The inputs of every ReLU for the first batch of the check, a column for each channel."""
    ((x, _),) = objective.check_batches(batch, 1)
    results: list[Any] = [different(x).astype(np.float64)]
    rectified = []
    for node, arrays in zip(objective.graph.nodes, objective.initial(), strict=True):
        inputs = [results[source] for source in node.inputs]
        if isinstance(node.layer, Relu) or getattr(node.layer, "relu", False):
            (result,) = module._rectified(node.layer, arrays, [[array] for array in inputs])
            rectified.append(result.reshape(-1, result.shape[-1]))
        results.append(forward(node.layer, arrays, *inputs)[0])
    return rectified


def _margin(objective: Objective, batch: int) -> float:
    """The distance from 0 of the nearest input of a ReLU, by the root mean square of a layer's."""
    return min(np.abs(x).min() / np.sqrt(np.mean(x**2)) for x in _rectified(objective, batch))


@pytest.mark.parametrize("name", _SMALL)
def test_no_input_of_a_relu_is_near_zero(name: str) -> None:
    """A hundred times as far as rounding errors in float32 reach, and on both sides."""
    (step,) = (step for step in MODELS if step.model == name)
    objective, batch = step.at(step.smallest), step.smallest["batch"]
    at_it = with_stable_weights(objective, batch)
    assert _margin(objective, batch) < 1e-4 < _margin(at_it, batch)
    for x in _rectified(at_it, batch):
        assert 0.1 < np.mean(x > 0) < 0.9


@pytest.mark.parametrize("training", [mlp, lenet], ids=lambda training: str(training.name))
def test_only_biases_are_moved(training: Any) -> None:
    """In float32's precision, and the same each time; kernels stay what they are."""
    moved = with_stable_weights(training, 8)
    for before, after in zip(training.initial(), moved.initial(), strict=True):
        for old, new in zip(before, after, strict=True):
            assert (old.ndim > 1) <= np.array_equal(old, new)
            assert np.array_equal(new.astype(np.float32), new)
    moved.initial()[-1][0].fill(0.0)  # as training does, in place
    repeated = [array for arrays in with_stable_weights(training, 24).initial() for array in arrays]
    every = [array for arrays in moved.initial() for array in arrays]
    assert all(map(np.array_equal, every, repeated)), "repeated examples make no difference"
    assert [moved.parameters, moved.name] == [training.parameters, training.name]


def test_what_moves_others_is_left_alone() -> None:
    """An offset that two layers see moves neither; that of the other summand does."""

    def network(x: Any) -> Any:
        shared = BatchNorm()(Conv(2, 3, same=True, relu=False, bias=False)(x))
        normalized = BatchNorm()(Conv(2, 3, same=True, relu=False, bias=False)(shared))
        return Dense(3, relu=False)(Flatten()(Relu()(Add()(shared, normalized))))

    objective = Objective("small", network, (4, 4, 1), 3, SGD())
    before, after = objective.initial(), with_stable_weights(objective, 8).initial()
    changed = [
        place
        for place, (old, new) in enumerate(zip(before, after, strict=True))
        if not all(map(np.array_equal, old, new))
    ]
    assert changed == [3]


def test_the_middle_of_the_widest_gap() -> None:
    """In the middle half of both batches; a channel of equal numbers has none."""
    first = np.array([[-9.0, 1], [0.0, 1], [1.0, 1], [2.0, 1]])
    second = np.array([[1.5, 1], [5.0, 1], [6.0, 1], [99.0, 1]])
    assert module._middles([first, second]).tolist() == [3.5, 0.0]
    assert module._middles([first[:1]]).tolist() == [0.0, 0.0], "no gap, nothing to move"


def test_the_runner_up_has_the_gradient_where_it_is_as_large() -> None:
    x = np.array([[3.0, 3.0 - 1e-9], [1.0, 2.0], [5.0, 4.0], [0.0, 1.0]]).reshape(1, 4, 2, 1)
    for nearly, expected in ((0.0, [1, 0, 0, 0, 1, 0, 0, 0]), (1e-6, [0, 1, 0, 0, 1, 0, 0, 0])):
        result, backward = tie_breaks_flipped(nearly)(MaxPool(), [], x)
        assert result.ravel().tolist() == [3.0, 5.0]
        ((of_x,), _) = backward(np.ones_like(result))
        assert of_x.ravel().tolist() == expected


def test_choices_that_are_none_change_nothing() -> None:
    """Where no elements are equal, and in networks without max pools."""
    ((images, labels),) = lenet.check_batches(8, 1)
    x = images.astype(np.float64)
    right = gradients(lenet.graph, lenet.initial(), x, labels)
    flipped = tie_breaks_flipped(1e-5)
    other = gradients(lenet.graph, lenet.initial(), x, labels, layer=flipped)
    assert right[0] == other[0]
    for some, others in zip(right[1], other[1], strict=True):
        assert all(map(np.array_equal, some, others))
