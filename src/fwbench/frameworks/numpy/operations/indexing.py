"""NumPy: indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

Array = NDArray[Any]


def _scatter_add(x: Array, i: Array, *, shape: tuple[int, int]) -> Array:
    sums = np.zeros(shape, x.dtype)
    np.add.at(sums, i, x)
    return sums


def _scatter_nd_update(x: Array, i: Array, rows: Array) -> Array:
    result = x.copy()
    result[i] = rows
    return result


def _one_hot(i: Array, *, depth: int) -> Array:
    result = np.zeros((len(i), depth), np.float32)
    np.put_along_axis(result, i[:, None], 1, axis=1)
    return result


OPERATIONS: Table = {
    "gather_rows": Call("take", axis=0),
    "embedding": lambda np, n, d: lambda w, i: w[i],
    "gather_elements": Call("take_along_axis", axis=1),
    "pick": lambda np: lambda x, i: np.take_along_axis(x, i[:, None], 1)[:, 0],
    "gather_nd": Laid(lambda np: lambda x, i: x[i[0], i[1]], axes("", "kc->ck")),
    "scatter_add": lambda np, n, d: lambda x, i: _scatter_add(x, i, shape=(n, d)),
    "scatter_nd_update": lambda np: _scatter_nd_update,
    "one_hot": lambda np, d: lambda i: _one_hot(i, depth=d),
    "boolean_mask": lambda np: lambda x, mask: x[mask],
    "sequence_mask": lambda np, d: lambda x, lengths: x * (np.arange(d) < lengths[:, None]),
}

GAPS: tuple[Gap, ...] = ()
