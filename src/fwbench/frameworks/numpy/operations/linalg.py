"""NumPy: vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _l2_normalize(x: NDArray[Any]) -> NDArray[Any]:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


OPERATIONS: Table = {
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "ravel",
    "l2_normalize": lambda np: _l2_normalize,
}

GAPS: tuple[Gap, ...] = ()
