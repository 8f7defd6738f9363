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


def _gelu_tanh(x: NDArray[Any]) -> NDArray[Any]:
    # A power of 3 would take many times as long as two products.
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _selu(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))


OPERATIONS: Table = {
    "sigmoid": lambda np: _sigmoid,
    "relu": lambda np: lambda x: np.maximum(x, 0),
    "tanh": "tanh",
    # A scalar 0.0 would keep float32, an array of zeros is not needed.
    "softplus": lambda np: lambda x: np.logaddexp(x, x.dtype.type(0)),
    "softsign": lambda np: _softsign,
    "gelu_tanh": lambda np: _gelu_tanh,
    "elu": lambda np: lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda np: _selu,
    "leaky_relu": lambda np: lambda x: np.where(x > 0, x, 0.25 * x),
    "silu": lambda np: lambda x: x / (1 + np.exp(-x)),
    "hard_sigmoid": lambda np: lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "log_sigmoid": lambda np: lambda x: -np.logaddexp(-x, x.dtype.type(0)),
}

GAPS: tuple[Gap, ...] = (Gap("numpy has no error function", "gelu"),)
