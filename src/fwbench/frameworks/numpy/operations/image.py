"""NumPy: images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

Array = NDArray[Any]


def _resize_nearest(x: Array) -> Array:
    return x.repeat(2, axis=1).repeat(2, axis=2)


def _im2col(x: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (1, 3, 3, 1))[..., 0, :, :, 0]
    n, h, w, c = windows.shape[:4]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(n, h, w, 9 * c)  # copies


OPERATIONS: Table = {
    "resize_nearest": lambda np, h, w: _resize_nearest,
    "im2col": lambda np, h, w: _im2col,
}

GAPS: tuple[Gap, ...] = (Gap("numpy has no interpolation of images", "resize_bilinear"),)
