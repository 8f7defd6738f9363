"""Operands have no order that a processor can learn: times would be those of that order alone."""

from __future__ import annotations

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
