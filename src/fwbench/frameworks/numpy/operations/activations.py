"""NumPy: activations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / (1.0 + np.exp(-x))


def _softsign(x: NDArray[Any]) -> NDArray[Any]:
    return x / (1.0 + np.abs(x))


OPERATIONS: Table = {
    "sigmoid": lambda np: _sigmoid,
    "relu": lambda np: lambda x: np.maximum(x, 0),
    "tanh": "tanh",
    # A scalar 0.0 would keep float32, an array of zeros is not needed.
    "softplus": lambda np: lambda x: np.logaddexp(x, x.dtype.type(0)),
    "softsign": lambda np: _softsign,
}

GAPS: tuple[Gap, ...] = ()
