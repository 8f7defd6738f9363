"""JAX: convolution, channels last."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.convolution import Window

#: By the number of axes of space: how input, kernel and result lie.
_DIMENSIONS = {
    1: ("NLC", "LIO", "NLC"),
    2: ("NHWC", "HWIO", "NHWC"),
    3: ("NDHWC", "DHWIO", "NDHWC"),
}


def _convolution(jax: Any, window: Window) -> Any:
    return partial(
        jax.lax.conv_general_dilated,
        window_strides=(window.stride,) * window.rank,
        padding=((window.padding, window.padding),) * window.rank,
        rhs_dilation=(window.dilation,) * window.rank,
        dimension_numbers=_DIMENSIONS[window.rank],
        feature_group_count=window.groups,
    )


def _transposed(jax: Any, window: Window) -> Any:
    """``SAME`` leaves out as much as makes the result ``stride`` times as large."""
    return partial(
        jax.lax.conv_transpose,
        strides=(window.stride,) * window.rank,
        padding="SAME",
        dimension_numbers=_DIMENSIONS[window.rank],
        transpose_kernel=True,
    )


OPERATIONS: Table = {
    "conv2d": _convolution,
    "conv2d_3x3": _convolution,
    "conv2d_1x1": _convolution,
    "conv2d_7x7_s2": _convolution,
    "conv2d_5x20_s2": _convolution,
    "conv2d_dilated": _convolution,
    "conv2d_grouped": _convolution,
    "depthwise_conv2d": _convolution,
    "conv2d_transposed": _transposed,
    "conv1d": _convolution,
    "conv3d": _convolution,
}

GAPS: tuple[Gap, ...] = ()
