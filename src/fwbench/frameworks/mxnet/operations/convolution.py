"""MXNet: convolution."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.convolution import Window

_SEQUENCES = axes("nlc->ncl", "lio->oil", results=["nlc->ncl"])
_IMAGES = axes("nhwc->nchw", "hwio->oihw", results=["nhwc->nchw"])
_VOLUMES = axes("ndhwc->ncdhw", "dhwio->oidhw", results=["ndhwc->ncdhw"])
_TRANSPOSED = axes("nhwc->nchw", "hwoi->iohw", results=["nhwc->nchw"])


def _moving(function: Any, window: Window) -> Any:
    """A convolution with its arguments; MXNet wants one for each axis."""
    return partial(
        function,
        kernel=window.kernel,
        stride=(window.stride,) * window.rank,
        pad=(window.padding,) * window.rank,
        dilate=(window.dilation,) * window.rank,
        num_filter=window.filters,
        num_group=window.groups,
        no_bias=True,
    )


def _convolution(F: Any, window: Window) -> Any:
    return _moving(F.Convolution, window)


def _deconvolution(F: Any, window: Window) -> Any:
    return _moving(F.Deconvolution, window)


OPERATIONS: Table = {
    "conv2d": Laid(_convolution, _IMAGES),
    "conv2d_3x3": Laid(_convolution, _IMAGES),
    "conv2d_1x1": Laid(_convolution, _IMAGES),
    "conv2d_7x7_s2": Laid(_convolution, _IMAGES),
    "conv2d_5x20_s2": Laid(_convolution, _IMAGES),
    "conv2d_dilated": Laid(_convolution, _IMAGES),
    "conv2d_grouped": Laid(_convolution, _IMAGES),
    "depthwise_conv2d": Laid(_convolution, _IMAGES),
    "conv2d_transposed": Laid(_deconvolution, _TRANSPOSED),
    "conv1d": Laid(_convolution, _SEQUENCES),
    "conv3d": Laid(_convolution, _VOLUMES),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet has no float16 product on the CPU", operation, dtype="float16", device="cpu")
    for operation in OPERATIONS
)
