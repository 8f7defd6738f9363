"""TensorFlow: convolution. Channels last, which is all that its CPU kernels know."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.convolution import Window

_DEPTHWISE = axes("", "hwio->hwoi")


def _padding(window: Window) -> Any:
    """``VALID`` and ``SAME`` where they say it; with a stride ``SAME`` pads one end more."""
    if not window.padding:
        return "VALID"
    whole = {window.dilation * (extent - 1) for extent in window.kernel}
    if window.stride == 1 and whole == {2 * window.padding}:
        return "SAME"
    return [[0, 0], *[[window.padding] * 2] * window.rank, [0, 0]]


def _moving(function: Any, window: Window, **strides: Any) -> Any:
    """A convolution with its arguments, the dilation where there is one."""
    dilated = {"dilations": window.dilation} if window.dilation > 1 else {}
    return partial(function, padding=_padding(window), **strides, **dilated)


def _conv1d(tf: Any, window: Window) -> Any:
    return _moving(tf.nn.conv1d, window, stride=window.stride)


def _conv2d(tf: Any, window: Window) -> Any:
    return _moving(tf.nn.conv2d, window, strides=window.stride)


def _conv3d(tf: Any, window: Window) -> Any:
    return _moving(tf.nn.conv3d, window, strides=[1, *[window.stride] * 3, 1])


def _depthwise(tf: Any, window: Window) -> Any:
    return _moving(tf.nn.depthwise_conv2d, window, strides=[1, *[window.stride] * 2, 1])


def _transposed(tf: Any, window: Window) -> Any:
    """``SAME`` leaves out as much as makes the result ``stride`` times as large."""

    def conv2d_transpose(x: Any, w: Any) -> Any:
        n, h, width, _ = x.shape
        shape = n, h * window.stride, width * window.stride, window.filters
        return tf.nn.conv2d_transpose(x, w, shape, window.stride, "SAME")

    return conv2d_transpose


OPERATIONS: Table = {
    "conv2d": _conv2d,
    "conv2d_3x3": _conv2d,
    "conv2d_1x1": _conv2d,
    "conv2d_7x7_s2": _conv2d,
    "conv2d_5x20_s2": _conv2d,
    "conv2d_dilated": _conv2d,
    "conv2d_grouped": _conv2d,
    "depthwise_conv2d": Laid(_depthwise, _DEPTHWISE),
    "conv2d_transposed": _transposed,
    "conv1d": _conv1d,
    "conv3d": _conv3d,
}

# In float32 and bfloat16 oneDNN has them; without it they would be missing there, too.
GAPS: tuple[Gap, ...] = tuple(
    Gap(
        f"tensorflow has no {dtype} gradient of a {kind} convolution on the CPU",
        f"conv2d_{kind}",
        execution,
        "backward",
        dtype,
        "cpu",
    )
    for kind in ("dilated", "grouped")
    for execution in ("eager", "graph")
    for dtype in ("float64", "float16")
)
