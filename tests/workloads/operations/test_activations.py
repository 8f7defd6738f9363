"""Activations are what the papers that propose them say, at operands that have a gradient."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from fwbench.workloads import (
    Operation,
    elu,
    gelu,
    gelu_tanh,
    hard_sigmoid,
    leaky_relu,
    log_sigmoid,
    selu,
    silu,
)
from fwbench.workloads.workload import Cost


def _gelu_tanh(v: float) -> float:
    return v / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v)))


FORMULAS: dict[Operation, Callable[[float], float]] = {
    gelu: lambda v: v * math.erfc(-v / math.sqrt(2)) / 2,
    gelu_tanh: _gelu_tanh,
    elu: lambda v: v if v > 0 else math.exp(v) - 1,
    selu: lambda v: 1.0507009873554805 * (v if v > 0 else 1.6732632423543772 * (math.exp(v) - 1)),
    leaky_relu: lambda v: max(v, v / 4),
    silu: lambda v: v * math.exp(v) / (1 + math.exp(v)),
    hard_sigmoid: lambda v: min(max((v + 3) / 6, 0), 1),
    log_sigmoid: lambda v: math.log(1 / (1 + math.exp(-v))),
}


@pytest.mark.parametrize("of", FORMULAS, ids=lambda of: str(of.name))
def test_references_compute_what_their_name_says(of: Operation) -> None:
    """Every reference agrees with the textbook's formula, written without NumPy."""
    (x,) = of.operands(20)
    assert np.min(x) < 0 < np.max(x)
    np.testing.assert_allclose(of.reference(x), [FORMULAS[of](v) for v in x], rtol=1e-12)


def test_the_tanh_form_of_gelu_is_another_function() -> None:
    """It is off by up to 5e-4, far more than float32 allows: neither passes for the other."""
    x = np.linspace(-4, 4, 1001)
    assert 4e-4 < np.max(np.abs(gelu_tanh.reference(x) - gelu.reference(x))) < 5e-4


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_every_piece_of_hard_sigmoid_has_operands_and_no_kink_has(dtype: type) -> None:
    """A third lies below -3, a third above 3, and rounding puts none on either."""
    x = hard_sigmoid.operands(10_000)[0].astype(dtype)
    assert np.min(np.abs(np.abs(x) - 3)) > 0.09
    for piece in (x < -3, np.abs(x) < 3, x > 3):
        assert 0.3 < np.mean(piece) < 0.37


COSTS = {
    gelu_tanh: (Cost(90, 20), Cost(200, 50)),
    elu: (Cost(20, 20), Cost(50, 50)),
    selu: (Cost(40, 20), Cost(70, 50)),
    leaky_relu: (Cost(20, 20), Cost(40, 50)),
    silu: (Cost(40, 20), Cost(90, 50)),
    hard_sigmoid: (Cost(40, 20), Cost(70, 50)),
    log_sigmoid: (Cost(50, 20), Cost(80, 50)),
}


@pytest.mark.parametrize("of", COSTS, ids=lambda of: str(of.name))
def test_costs(of: Operation) -> None:
    """Each reads x and writes y; the gradient reads x and g and writes one more."""
    assert (of.cost_of("forward", 10), of.cost_of("backward", 10)) == COSTS[of]
