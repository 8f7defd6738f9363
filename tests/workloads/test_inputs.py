"""Operands have no order that a processor can learn: times would be those of that order alone."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.workloads import OPERATIONS
from fwbench.workloads.operation import Operation

#: Distances at which the order of neighbours is compared with itself.
_LAGS = range(2, 65)

#: What chance agrees in is 0.5; of a few hundred comparisons rarely more than 0.6.
_LEARNED = 0.75

#: Fewer comparisons tell nothing.
_ENOUGH = 500

#: Distances at which numbers are compared with each other, how many of them at least, and of how
#: many at most; and what chance does not explain: lower triangles have zeros side by side (0.45).
_DISTANCES = range(1, 65)
_COMPARED, _LOOKED_AT = 100, 100_000
_PERIODIC = 0.6

_ONE = "one parameter for all, of the distribution that is drawn from"

#: Operands whose order is what the operation is about.
_ORDERED = {
    "searchsorted": "it searches in sorted numbers",
    **dict.fromkeys(("random_bernoulli", "random_gamma", "random_poisson"), _ONE),
}


def _agreement(x: NDArray[Any]) -> float:
    """The share of neighbours in the order of others, at the distance where it is largest."""
    worst = 0.0
    for axis in range(x.ndim):
        steps = np.diff(np.nan_to_num(np.moveaxis(x, axis, -1), nan=9.0), axis=-1)
        rises = np.sign(steps).ravel()[:100_000]
        if rises.size >= _ENOUGH:
            worst = max(worst, *(float(np.mean(rises[k:] == rises[:-k])) for k in _LAGS))
    return worst


def _period(x: NDArray[Any]) -> float:
    """Excess over chance of numbers that come again at a distance: at most 1 (Cohen's kappa)."""
    worst = 0.0
    for axis in (None, *range(x.ndim)):
        moved = x.ravel() if axis is None else np.moveaxis(x, axis, 0)
        some = moved[: max(2 * len(_DISTANCES), _LOOKED_AT // max(1, moved[0].size))]
        _, counts = np.unique(some, return_counts=True)
        chance = np.sum((counts / some.size) ** 2)
        for k in _DISTANCES:
            if len(some) > 2 * k and some[k:].size >= _COMPARED:
                agreement = np.mean(some[k:] == some[:-k])
                worst = max(worst, float((agreement - chance) / (1 - chance)) if chance < 1 else 1)
    return worst


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_no_numbers_come_again_after_a_few_others(operation: Operation) -> None:
    """Operands of a preset have no period, unless they are one and the same number."""
    for size in operation.by_preset.quick:
        operands = [np.nan_to_num(x, nan=9.0) for x in operation.operands(size) if x.size > 1]
        worst = max(map(_period, operands), default=0.0)
        assert (worst > _PERIODIC) == (_ORDERED.get(operation.name) == _ONE), (size, worst)


def test_a_period_is_found() -> None:
    random = np.random.default_rng(1).standard_normal((300, 300))
    assert _period(np.arange(9_000) % 7) == _period(np.tile(random[:3], (100, 1))) == 1.0
    assert _period(np.ones((20, 20))) == 1.0
    assert _period(random > 0) < 0.1


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_no_order_can_be_learned(operation: Operation) -> None:
    operands = operation.operands(operation.by_preset.quick[1])
    real = [x for x in operands if x.dtype.kind == "f" and x.size > _ENOUGH]
    worst = max(map(_agreement, real), default=0.0)
    assert (worst > _LEARNED) == (operation.name in _ORDERED), worst


def test_an_order_is_found() -> None:
    x = np.arange(9_000.0)
    assert _agreement(x % 3) > _LEARNED
    assert _agreement(x) > _LEARNED
    assert _agreement(np.random.default_rng(1).standard_normal(9_000)) < 0.6
