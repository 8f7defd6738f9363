"""NumPy: shapes and orders of elements. What NumPy has as a view is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

Array = NDArray[Any]

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))
_copy = np.ascontiguousarray


def _depth_to_space(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, 2 * h, 2 * w, c // 4)  # copies: the axes are in another order


OPERATIONS: Table = {
    "transpose": lambda np: lambda x: _copy(np.transpose(x)),
    "permute_nhwc_nchw": lambda np: lambda x: _copy(np.transpose(x, (0, 3, 1, 2))),
    "concat": lambda np: lambda x, y: np.concatenate([x, y], 1),
    "stack": lambda np: lambda x, y: np.stack([x, y], 1),
    "split": lambda np: lambda x: [_copy(part) for part in np.split(x, 4, 1)],
    "pad_constant": Call("pad", pad_width=_PADDING),
    "pad_reflect": Call("pad", pad_width=_PADDING, mode="reflect"),
    "tile": Call("tile", reps=(2, 3)),
    "repeat": Call("repeat", repeats=3, axis=1),
    "slice": lambda np, begin, end: lambda x: _copy(x[begin:end, begin:end]),
    "strided_slice": lambda np: lambda x: _copy(x[::2, ::3]),
    "flip": lambda np: lambda x: _copy(np.flip(x, 1)),
    "roll": Call("roll", shift=3, axis=1),
    "broadcast_to": lambda np, n: lambda x: _copy(np.broadcast_to(x, (n, n))),
    "depth_to_space": lambda np: _depth_to_space,
    "tril": "tril",
    "diag_part": lambda np: lambda x: _copy(np.diagonal(x)),
}

GAPS: tuple[Gap, ...] = ()
