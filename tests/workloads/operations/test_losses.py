"""Softmax, losses and attention: references against formulas, inputs off the bends, costs."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.workloads import ATTENTION, Operation
from support.operations import for_each, named, sized


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


@for_each(ATTENTION)
def test_attention_is_the_formula(operation: Operation) -> None:
    """A mean of values, weighted with exponentials of products with keys; later ones left out."""
    q, k, v = operation.operands(sized(operation, "b2h1t5d3"))
    result = operation.reference(q, k, v)
    for batch in range(2):
        for at in range(5):
            seen = range(at + 1 if operation.name == "attention_causal" else 5)
            weights = [
                math.exp(sum(q[batch, 0, at] * k[batch, 0, other]) / math.sqrt(3)) for other in seen
            ]
            mean = sum(w * v[batch, 0, other] for w, other in zip(weights, seen, strict=True))
            np.testing.assert_allclose(result[batch, 0, at], mean / sum(weights), rtol=1e-12)


def test_causal_attention_does_not_see_what_comes() -> None:
    """The last key and value change the last result alone."""
    causal = ATTENTION[1]
    q, k, v = causal.operands(causal.smallest)
    before = causal.reference(q, k, v)
    k[..., -1, :], v[..., -1, :] = 0.0, 0.0
    after = causal.reference(q, k, v)
    np.testing.assert_array_equal(after[..., :-1, :], before[..., :-1, :])
    assert np.all(after[..., -1, :] != before[..., -1, :])
