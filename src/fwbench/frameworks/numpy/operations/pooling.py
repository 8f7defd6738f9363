"""NumPy: pooling. Windows that do not overlap are a reshape, others are shifted copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

Array = NDArray[Any]


def _tiles(x: Array) -> Array:
    """N H 2 W 2 C."""
    n, h, width, c = x.shape
    return x.reshape(n, h // 2, 2, width // 2, 2, c)


def _max_pool2d_3x3_s2(x: Array) -> Array:
    """The largest of three rows, then of three columns."""
    rows, columns = x.shape[1] - 2, x.shape[2] - 2
    y = np.maximum(np.maximum(x[:, :rows:2], x[:, 1::2][:, : (rows + 1) // 2]), x[:, 2::2])
    left, right = y[:, :, :columns:2], y[:, :, 2::2]
    return np.maximum(np.maximum(left, y[:, :, 1::2][:, :, : (columns + 1) // 2]), right)


def _max_pool1d(x: Array) -> Array:
    return x.reshape(len(x), -1, 2, x.shape[-1]).max(axis=2)


OPERATIONS: Table = {
    "max_pool2d": lambda np: lambda x: _tiles(x).max(axis=(2, 4)),
    "max_pool2d_3x3_s2": lambda np: _max_pool2d_3x3_s2,
    "avg_pool2d": lambda np: lambda x: _tiles(x).mean(axis=(2, 4)),
    "global_avg_pool": Call("mean", axis=(1, 2), keepdims=True),
    "max_pool1d": lambda np: _max_pool1d,
}

GAPS: tuple[Gap, ...] = ()
