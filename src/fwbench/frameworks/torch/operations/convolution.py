"""PyTorch: convolution."""

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
    """A convolution with the arguments that differ from PyTorch's defaults."""
    given = {"stride": window.stride, "dilation": window.dilation, "groups": window.groups}
    changed = {name: value for name, value in given.items() if value != 1}
    return partial(function, padding=window.padding, **changed)


def _conv1d(torch: Any, window: Window) -> Any:
    return _moving(torch.nn.functional.conv1d, window)


def _conv2d(torch: Any, window: Window) -> Any:
    return _moving(torch.nn.functional.conv2d, window)


def _conv3d(torch: Any, window: Window) -> Any:
    return _moving(torch.nn.functional.conv3d, window)


def _conv2d_transposed(torch: Any, window: Window) -> Any:
    return _moving(torch.nn.functional.conv_transpose2d, window)


OPERATIONS: Table = {
    "conv2d": Laid(_conv2d, _IMAGES),
    "conv2d_3x3": Laid(_conv2d, _IMAGES),
    "conv2d_1x1": Laid(_conv2d, _IMAGES),
    "conv2d_7x7_s2": Laid(_conv2d, _IMAGES),
    "conv2d_5x20_s2": Laid(_conv2d, _IMAGES),
    "conv2d_dilated": Laid(_conv2d, _IMAGES),
    "conv2d_grouped": Laid(_conv2d, _IMAGES),
    "depthwise_conv2d": Laid(_conv2d, _IMAGES),
    "conv2d_transposed": Laid(_conv2d_transposed, _TRANSPOSED),
    "conv1d": Laid(_conv1d, _SEQUENCES),
    "conv3d": Laid(_conv3d, _VOLUMES),
}

GAPS: tuple[Gap, ...] = ()
