"""Softmax and losses: references against formulas without NumPy, inputs off the bends, costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.workloads import Operation
from fwbench.workloads.workload import Cost
from support.operations import named, sized


def _operands(operation: Operation) -> Any:
    return operation.operands(sized(operation, "4x5"))


def _shares(row: list[float]) -> list[float]:
    exponentials = [math.exp(value) for value in row]
    return [value / sum(exponentials) for value in exponentials]


@pytest.mark.parametrize(("name", "formula"), [("softmax", float), ("log_softmax", math.log)])
def test_softmax_is_a_share_of_exponentials(name: str, formula: Callable[[float], float]) -> None:
    operation = named(name)
    (x,) = _operands(operation)
    expected = [[formula(share) for share in _shares(row)] for row in x.tolist()]
    np.testing.assert_allclose(operation.reference(x), expected, rtol=1e-12)


def test_softmax_does_not_overflow() -> None:
    x = np.array([[1000.0, 0.0], [-1000.0, 0.0]])
    np.testing.assert_array_equal(named("softmax").reference(x), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(named("log_softmax").reference(x), [[0, -1000], [-1000, 0]])


def _cross_entropies(x: Any, labels: Any) -> list[float]:
    rows = zip(x.tolist(), labels, strict=True)
    return [-math.log(_shares(row)[label]) for row, label in rows]


def _binary(x: float, answer: float) -> float:
    share = 1 / (1 + math.exp(-x))
    return -math.log(share if answer == 1 else 1 - share)


def _huber(x: float, y: float) -> float:
    distance = abs(x - y)
    return distance**2 / 2 if distance < 1 else distance - 1 / 2


def _elementwise(loss: Callable[[float, float], float]) -> Callable[[Any, Any], list[float]]:
    return lambda x, y: [loss(a, b) for a, b in zip(x.flat, y.flat, strict=True)]


_LOSSES: dict[str, Callable[[Any, Any], list[float]]] = {
    "cross_entropy": _cross_entropies,
    "cross_entropy_sum": _cross_entropies,
    "binary_cross_entropy": _elementwise(_binary),
    "mse": _elementwise(lambda x, y: (x - y) * (x - y)),
    "huber": _elementwise(_huber),
}


@pytest.mark.parametrize("name", _LOSSES)
def test_losses_are_the_means_of_their_formulas(name: str) -> None:
    operation = named(name)
    operands = _operands(operation)
    losses = _LOSSES[name](*operands)
    expected = sum(losses) / (1 if name.endswith("_sum") else len(losses))
    assert operation.reference(*operands) == pytest.approx(expected, rel=1e-12)


def test_huber_has_a_gradient_at_its_inputs() -> None:
    """Distances are off 0 and 1, on both sides of 1, and of both signs."""
    x, y = named("huber").operands(named("huber").by_preset.quick[1])
    distance = np.abs(x - y)
    assert np.min(np.minimum(distance, np.abs(distance - 1))) > 0.04
    assert 0.4 < np.mean(distance < 1) < 0.6
    assert 0.4 < np.mean(x < y) < 0.6


def test_answers_are_zero_and_one() -> None:
    _, answers = named("binary_cross_entropy").operands(
        named("binary_cross_entropy").by_preset.quick[1]
    )
    assert {*answers.flat} == {0.0, 1.0}
    assert 0.4 < np.mean(answers) < 0.6


def _collapsed(path: tuple[int, ...]) -> list[int]:
    """The labels of a path: repetitions become one, then blanks go."""
    return [label for label, _ in itertools.groupby(path) if label]


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2, 1]])
def test_ctc_adds_up_all_paths_that_say_the_labels(labels: list[int]) -> None:
    """Its loss is the logarithm of their share among all paths, of 3 classes in 5 steps."""
    operation = named("ctc_loss")
    x, _ = operation.operands(sized(operation, "n1t5c3l2"))
    shares = [_shares(row) for row in x[0].tolist()]
    likely = sum(
        math.prod(shares[t][c] for t, c in enumerate(path))
        for path in itertools.product(range(3), repeat=5)
        if _collapsed(path) == labels
    )
    (loss,) = operation.reference(x, np.array([labels]), 1, 5, 2)
    assert loss == pytest.approx(-math.log(likely), rel=1e-12)


def test_the_cost_of_ctc() -> None:
    """2 sequences of 20 steps with 29 classes, and a path of 11 places for 5 labels."""
    operation = named("ctc_loss")
    size = sized(operation, "n2t20c29l5")
    forward = Cost(5 * 1160 + 6 * 440, 1160 + 10 + 2)
    assert operation.cost_of("forward", size) == forward
    backward = Cost(forward.flops + 6 * 440 + 2 * 1160, 2 * forward.elements + 1160)
    assert operation.cost_of("backward", size) == backward
