"""Normalisation: references against loops without NumPy's reductions, and costs."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from fwbench.workloads import NORMALISATION, Operation
from fwbench.workloads.workload import Cost
from support.operations import sized

_BY_NAME = {operation.name: operation for operation in NORMALISATION}

#: What is normalised together with an element: (n, h, w, c), or (n, t, c), of both.
_TOGETHER: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "batch_norm_training": lambda a, b: a[-1] == b[-1],
    "layer_norm": lambda a, b: a[:-1] == b[:-1],
    "group_norm": lambda a, b: a[0] == b[0] and a[-1] // 2 == b[-1] // 2,  # 16 channels, 8 groups
    "instance_norm": lambda a, b: (a[0], a[-1]) == (b[0], b[-1]),
}


def _tiny(operation: Operation) -> Any:
    return sized(operation, "n2t3c16" if "t" in operation.by_preset.quick[0] else "n2h3w2c16")


def _standard(value: float, values: Iterable[float], epsilon: float) -> float:
    """A number less the mean of others, divided by their deviation."""
    numbers = [*values]
    mean = sum(numbers) / len(numbers)
    variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    return (value - mean) / math.sqrt(variance + epsilon)


@pytest.mark.parametrize("name", _TOGETHER)
def test_references_are_standard_scores(name: str) -> None:
    """Each element less the mean of its kind, by its deviation, times gamma, plus beta."""
    operation, epsilon = _BY_NAME[name], 1e-3 if name == "batch_norm_training" else 1e-5
    x, gamma, beta = operation.operands(_tiny(operation))
    result = operation.reference(x, gamma, beta)
    for at in np.ndindex(x.shape):
        others = (float(x[b]) for b in np.ndindex(x.shape) if _TOGETHER[name](at, b))
        expected = _standard(float(x[at]), others, epsilon) * gamma[at[-1]] + beta[at[-1]]
        assert result[at] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_batch_norm_of_inference_uses_the_statistics_that_it_is_given() -> None:
    operation = _BY_NAME["batch_norm_inference"]
    x, gamma, beta, mean, variance = operation.operands(_tiny(operation))
    result = operation.reference(x, gamma, beta, mean, variance)
    for at in np.ndindex(x.shape):
        c = at[-1]
        score = (float(x[at]) - mean[c]) / math.sqrt(variance[c] + 1e-3)
        assert result[at] == pytest.approx(score * gamma[c] + beta[c], rel=1e-12)


def test_rms_norm_divides_by_the_root_mean_square() -> None:
    operation = _BY_NAME["rms_norm"]
    x, gamma = operation.operands(_tiny(operation))
    result = operation.reference(x, gamma)
    for n, t, c in np.ndindex(x.shape):
        square = sum(float(v) ** 2 for v in x[n, t]) / x.shape[-1]
        expected = float(x[n, t, c]) / math.sqrt(square + 1e-5) * gamma[c]
        assert result[n, t, c] == pytest.approx(expected, rel=1e-12)


def test_local_response_is_divided_by_the_five_nearest_channels() -> None:
    """AlexNet's formula: x / (2 + 1e-4 * sum of squares) ** 0.75, fewer channels at the ends."""
    operation = _BY_NAME["lrn"]
    (x,) = operation.operands(_tiny(operation))
    result = operation.reference(x)
    for *place, c in np.ndindex(x.shape):
        pixel = [float(v) for v in x[tuple(place)]]
        total = sum(v * v for v in pixel[max(0, c - 2) : c + 3])
        expected = pixel[c] / (2 + 1e-4 * total) ** 0.75
        assert result[(*place, c)] == pytest.approx(expected, rel=1e-12)


def test_the_squares_of_local_response_count() -> None:
    """Without them the results would differ by far more than float32's tolerance."""
    operation = _BY_NAME["lrn"]
    (x,) = operation.operands(operation.by_preset.quick[0])
    assert np.median(np.abs(operation.reference(x) * 2**0.75 / x - 1)) > 0.05


#: Operations for an element, vectors read, and vectors that a gradient is written for.
_PARTS = {
    "batch_norm_training": (8, 2, 2),
    "batch_norm_inference": (4, 4, 2),
    "layer_norm": (8, 2, 2),
    "rms_norm": (5, 1, 1),
    "group_norm": (8, 2, 2),
    "instance_norm": (8, 2, 2),
    "lrn": (15, 0, 0),
}


@pytest.mark.parametrize("name", _BY_NAME)
def test_costs(name: str) -> None:
    """x is read and y written; the gradient reads x, g and the vectors, and writes as many."""
    operation, (flops, vectors, differentiated) = _BY_NAME[name], _PARTS[name]
    size = _tiny(operation)
    (x, *others) = operation.operands(size)
    assert len(others) == vectors
    forward = Cost(flops * x.size, 2 * x.size + 16 * vectors)
    gradient = 3 * x.size + 16 * (vectors + differentiated)
    assert operation.cost_of("forward", size) == forward
    assert operation.cost_of("backward", size) == Cost(
        3 * forward.flops, forward.elements + gradient
    )
