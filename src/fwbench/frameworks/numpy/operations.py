"""NumPy's functions for fwbench's operations: paths below ``np``, and what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Table


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / (1.0 + np.exp(-x))


def _softsign(x: NDArray[Any]) -> NDArray[Any]:
    return x / (1.0 + np.abs(x))


def _l2_normalize(x: NDArray[Any]) -> NDArray[Any]:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


OPERATIONS: Table = {
    "sigmoid": lambda np: _sigmoid,
    "relu": lambda np: lambda x: np.maximum(x, 0),
    "tanh": "tanh",
    # A scalar 0.0 would keep float32, an array of zeros is not needed.
    "softplus": lambda np: lambda x: np.logaddexp(x, x.dtype.type(0)),
    "softsign": lambda np: _softsign,
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "ravel",
    "l2_normalize": lambda np: _l2_normalize,
    "noop": lambda np: lambda x: x,
}
