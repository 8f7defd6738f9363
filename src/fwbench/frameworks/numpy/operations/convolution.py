"""NumPy: convolution, as a product of all windows with the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.convolution import Window

Array = NDArray[Any]


def _windows(x: Array, window: Window) -> Array:
    """N H W C R S: a view of what each position of the kernel covers."""
    space = tuple(range(1, 1 + window.rank))
    padded = np.pad(x, [(0, 0), *[(window.padding,) * 2] * window.rank, (0, 0)])
    reach = [window.dilation * (extent - 1) + 1 for extent in window.kernel]
    every = sliding_window_view(padded, reach, axis=space)  # type: ignore[call-overload]
    strided = every[(slice(None), *[slice(None, None, window.stride)] * window.rank)]
    return strided[(..., *[slice(None, None, window.dilation)] * window.rank)]


def _group(windows: Array, w: Array) -> Array:
    """The convolution of one group of channels."""
    rank = w.ndim - 2
    own = tuple(range(1 + rank, windows.ndim))
    return np.tensordot(windows, w, (own, (rank, *range(rank))))


def _convolution(_: Any, window: Window) -> Any:
    def convolution(x: Array, w: Array) -> Array:
        parts = zip(
            np.split(_windows(x, window), window.groups, axis=1 + window.rank),
            np.split(w, window.groups, axis=-1),
            strict=True,
        )
        return np.concatenate([_group(*part) for part in parts], axis=-1)

    return convolution


def _depthwise(_: Any, window: Window) -> Any:
    return lambda x, w: np.einsum("nhwcrs,rsc->nhwc", _windows(x, window), w[:, :, 0])


def _transposed(_: Any, window: Window) -> Any:
    """The convolution of the input, zeros between its elements, with the flipped kernel."""
    stride, edge = window.stride, window.kernel[0] - 1 - window.padding
    spread = Window(window.kernel, window.filters, padding=edge)

    def conv2d_transpose(x: Array, w: Array) -> Array:
        n, h, width, c = x.shape
        wide = np.zeros((n, stride * (h - 1) + 1, stride * (width - 1) + 1, c), x.dtype)
        wide[:, ::stride, ::stride] = x
        return _group(_windows(wide, spread), w[::-1, ::-1].swapaxes(2, 3))

    return conv2d_transpose


OPERATIONS: Table = {
    "conv2d": _convolution,
    "conv2d_3x3": _convolution,
    "conv2d_1x1": _convolution,
    "conv2d_7x7_s2": _convolution,
    "conv2d_5x20_s2": _convolution,
    "conv2d_dilated": _convolution,
    "conv2d_grouped": _convolution,
    "depthwise_conv2d": _depthwise,
    "conv2d_transposed": _transposed,
    "conv1d": _convolution,
    "conv3d": _convolution,
}

GAPS: tuple[Gap, ...] = ()
