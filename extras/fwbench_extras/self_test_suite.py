"""Suite of ``fwbench ab --self-test``: twenty NumPy operations, and some of them slowed.

Each operation is called twenty times. Its slowed forms call it once and twice more: 5 and 10 % more
of the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench import Case, Operation

_REPEATS = 20

_SIZES = (1_000, 30_000)

_FUNCTIONS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "exp": np.exp,
    "sin": np.sin,
    "tanh": np.tanh,
    "sqrt": lambda x: np.sqrt(np.abs(x)),
    "add": lambda x: x + x,
    "cumsum": np.cumsum,
    "sort": np.sort,
    "sum": lambda x: np.sum(x, keepdims=True),
    "copy": np.copy,
    "outer": lambda x: np.outer(x[:100], x[:100]),
}

#: Of these there are slowed forms, by how many calls more.
_SLOWED = {"exp": (1, 2), "sort": (1, 2)}


def _repeated(function: Callable[[Any], Any], repeats: int, x: Any) -> Any:
    for _ in range(repeats):
        result = function(x)
    return result


def _operation(name: str, function: Callable[[Any], Any], repeats: int) -> Operation:
    return Operation(
        name=name,
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=function,
        sizes=_SIZES,
        differentiable=False,
        terms=lambda size: size,
        implementations={"numpy": lambda _: partial(_repeated, function, repeats)},
    )


_OPERATIONS = [
    _operation(f"{name}_slowed_{more}" if more else name, function, _REPEATS + more)
    for name, function in _FUNCTIONS.items()
    for more in (0, *_SLOWED.get(name, ()))
]


@pytest.mark.fwbench(*_OPERATIONS)
def test_operation(case: Case) -> None:
    """One operation, called many times."""
    case.measure()
