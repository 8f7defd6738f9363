"""ONNX Runtime: shapes and orders of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _slice(op: Any, begin: int, end: int) -> Any:
    begins, ends = np.array([begin] * 2, np.int64), np.array([end] * 2, np.int64)
    return lambda x: op.Slice(x, begins, ends)


OPERATIONS: Table = {
    "transpose": Call("Transpose", perm=[1, 0]),
    "permute_nhwc_nchw": Call("Transpose", perm=[0, 3, 1, 2]),
    "concat": Call("Concat", axis=1),
    "split": Call("Split", axis=1, num_outputs=4, results=4),
    "tile": lambda op: lambda x: op.Tile(x, np.array([2, 3], np.int64)),
    "slice": _slice,
    "tril": Call("Trilu", upper=0),
}


GAPS: tuple[Gap, ...] = ()
