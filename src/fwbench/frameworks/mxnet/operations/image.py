"""MXNet: images, channels first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout, axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_CHANNELS_FIRST = axes("nhwc->nchw", results=["nhwc->nchw"])


def _channel_first(arrays: Arrays) -> list[NDArray[Any]]:
    """A channel has its patch behind it, and all of them come before the pixels."""
    (x,) = arrays
    n, h, w, c = x.shape
    patches = x.reshape(n, h, w, 9, c // 9).transpose(0, 4, 3, 1, 2)
    return [np.ascontiguousarray(patches.reshape(n, c, h, w))]


def _channel_last(arrays: Arrays) -> list[NDArray[Any]]:
    (x,) = arrays
    n, c, h, w = x.shape
    patches = x.reshape(n, c // 9, 9, h, w).transpose(0, 3, 4, 2, 1)
    return [np.ascontiguousarray(patches.reshape(n, h, w, c))]


_PATCHES = Layout(_CHANNELS_FIRST.place, _CHANNELS_FIRST.restore, _channel_first, _channel_last)


def _resize_bilinear(F: Any, h: int, w: int) -> Any:
    return Call("contrib.BilinearResize2D", height=h, width=w, align_corners=False)(F)


def _resize_nearest(F: Any, *_: int) -> Any:
    return Call("UpSampling", scale=2, sample_type="nearest")(F)


def _im2col(F: Any, h: int, w: int) -> Any:
    return lambda x: F.reshape(F.im2col(x, kernel=(3, 3)), shape=(0, 0, h, w))


OPERATIONS: Table = {
    "resize_bilinear": Laid(_resize_bilinear, _CHANNELS_FIRST),
    "resize_nearest": Laid(_resize_nearest, _CHANNELS_FIRST),
    "im2col": Laid(_im2col, _PATCHES),
}

GAPS: tuple[Gap, ...] = ()
