"""Steps of optimisers, by the formulas of their papers, number by number."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fwbench.workloads import OPTIMISERS, Operation
from fwbench.workloads.operations.optimisers import TINY
from support.operations import for_each

RATE, MOMENTUM, BETA2, DECAY, L1 = 0.125, 0.875, 1 - 1 / 1024, 1 / 128, 1 / 16


def adam(x: float, g: float, m: float, v: float, decay: float = 0.0) -> tuple[float, ...]:
    """Kingma and Ba (2014), after infinitely many steps; decoupled decay by Loshchilov, Hutter."""
    m, v = MOMENTUM * m + (1 - MOMENTUM) * g, BETA2 * v + (1 - BETA2) * g**2
    return x - RATE * m / math.sqrt(v) - RATE * decay * x, m, v


def ftrl(x: float, g: float, z: float, v: float) -> tuple[float, ...]:
    """Algorithm 1 of McMahan et al. (2013) with beta = lambda2 = 0."""
    sigma = (math.sqrt(v + g**2) - math.sqrt(v)) / RATE
    z, v = z + g - sigma * x, v + g**2
    step = -(z - math.copysign(L1, z)) / (math.sqrt(v) / RATE) if abs(z) > L1 else 0.0
    return step, z, v


FORMULAS: dict[str, Callable[..., tuple[float, ...]]] = {
    "sgd": lambda x, g: (x - g / 8,),
    "momentum": lambda x, g, m: (x - (7 * m / 8 + g) / 8, 7 * m / 8 + g),
    "nesterov": lambda x, g, m: (x - (g + 7 * (7 * m / 8 + g) / 8) / 8, 7 * m / 8 + g),
    "adam": adam,
    "adamw": lambda *arrays: adam(*arrays, DECAY),
    "rmsprop": lambda x, g, v: (x - g / 8 / math.sqrt((7 * v + g**2) / 8), (7 * v + g**2) / 8),
    "adagrad": lambda x, g, v: (x - g / 8 / math.sqrt(v + g**2), v + g**2),
    "ftrl": ftrl,
}


@for_each(OPTIMISERS)
def test_references_are_the_formulas(operation: Operation) -> None:
    """New weights and new state, of each weight by itself."""
    operands = operation.operands(50)
    result: Any = operation.reference(*operands)
    result = result if isinstance(result, tuple) else (result,)
    expected = [
        FORMULAS[operation.name](*map(float, numbers)) for numbers in zip(*operands, strict=True)
    ]
    np.testing.assert_allclose(np.transpose(result), expected, rtol=1e-12)


@for_each(OPTIMISERS)
def test_everything_but_the_gradient_is_overwritten(operation: Operation) -> None:
    """The positions are those of the weights and of the state, in the order of the results."""
    operands = operation.operands(8)
    assert operation.updates == (0, *range(2, len(operands)))
    results = operation.reference(*operands)
    assert len(operation.updates) == (len(results) if isinstance(results, tuple) else 1)


@for_each(OPTIMISERS)
def test_a_step_is_seen_in_the_weights(operation: Operation) -> None:
    """An error of a thousandth of the step is larger than what float32 rounds off."""
    x, *others = operation.operands(1_000)
    results = operation.reference(x, *others)
    after = results[0] if isinstance(results, tuple) else results
    assert np.median(np.abs(after - x)) / 1_000 > 4e-6


def test_denominators_are_not_zero_and_not_changed() -> None:
    """The smallest square is far above the number that keeps it off zero."""
    assert 0 < TINY < 1e-20
    for operation in OPTIMISERS:
        assert np.min(np.abs(operation.operands(10_000)[1])) >= 0.2
