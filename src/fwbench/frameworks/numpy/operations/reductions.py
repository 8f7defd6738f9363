"""NumPy: reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _logsumexp(x: NDArray[Any]) -> NDArray[Any]:
    peaks = np.max(x, axis=1, keepdims=True)
    return np.asarray(np.log(np.sum(np.exp(x - peaks), axis=1)) + peaks[:, 0])


OPERATIONS: Table = {
    "sum": "sum",
    "sum_columns": Call("sum", axis=0),
    "sum_rows": Call("sum", axis=1),
    "mean": Call("mean", axis=1),
    "variance": Call("var", axis=1),
    "std": Call("std", axis=1),
    "max": Call("max", axis=1),
    "min": Call("min", axis=1),
    "prod": Call("prod", axis=1),
    "norm": "linalg.norm",
    "logsumexp": lambda np: _logsumexp,
    "cumsum": Call("cumsum", axis=1),
    "any": Call("any", axis=1),
    "argmax": Call("argmax", axis=1),
    "argmin": Call("argmin", axis=1),
}

GAPS: tuple[Gap, ...] = ()
