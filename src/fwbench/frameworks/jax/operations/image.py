"""JAX: images."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap


def _swapped(arrays: Arrays, *, channel_first: bool) -> list[NDArray[Any]]:
    """Patches with the channel before the place in the patch, or behind it."""
    (x,) = arrays
    n, h, w, c = x.shape
    parts = (9, c // 9) if channel_first else (c // 9, 9)
    return [np.ascontiguousarray(x.reshape(n, h, w, *parts).swapaxes(3, 4).reshape(x.shape))]


_PATCHES = Layout(
    place_results=lambda arrays: _swapped(arrays, channel_first=True),
    restore_results=lambda arrays: _swapped(arrays, channel_first=False),
)


def _resize(x: Any, h: int, w: int, method: str) -> Any:
    n, _, _, c = x.shape
    return jax.image.resize(x, (n, h, w, c), method)


def _im2col(x: Any) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated_patches(
        x, (3, 3), (1, 1), "VALID", dimension_numbers=layout
    )


OPERATIONS: Table = {
    "resize_bilinear": lambda jax, h, w: lambda x: _resize(x, h, w, "bilinear"),
    "resize_nearest": lambda jax, h, w: lambda x: _resize(x, h, w, "nearest"),
    "im2col": Laid(lambda jax, h, w: _im2col, _PATCHES),
}

GAPS: tuple[Gap, ...] = ()
