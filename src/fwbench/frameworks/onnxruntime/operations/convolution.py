"""ONNX Runtime: convolution."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.convolution import Window

_SEQUENCES = axes("nlc->ncl", "lio->oil", results=["nlc->ncl"])
_IMAGES = axes("nhwc->nchw", "hwio->oihw", results=["nhwc->nchw"])
_VOLUMES = axes("ndhwc->ncdhw", "dhwio->oidhw", results=["ndhwc->ncdhw"])
_TRANSPOSED = axes("nhwc->nchw", "hwoi->iohw", results=["nhwc->nchw"])


def _moving(operator: str) -> Any:
    """A convolution with the attributes of a window."""

    def implementation(op: Any, window: Window) -> Any:
        def convolution(x: Any, w: Any) -> Any:
            return getattr(op, operator)(
                x,
                w,
                strides=[window.stride] * window.rank,
                pads=[window.padding] * (2 * window.rank),
                dilations=[window.dilation] * window.rank,
                group=window.groups,
            )

        return convolution

    return implementation


_CONV = _moving("Conv")

OPERATIONS: Table = {
    "conv2d": Laid(_CONV, _IMAGES),
    "conv2d_3x3": Laid(_CONV, _IMAGES),
    "conv2d_1x1": Laid(_CONV, _IMAGES),
    "conv2d_7x7_s2": Laid(_CONV, _IMAGES),
    "conv2d_5x20_s2": Laid(_CONV, _IMAGES),
    "conv2d_dilated": Laid(_CONV, _IMAGES),
    "conv2d_grouped": Laid(_CONV, _IMAGES),
    "depthwise_conv2d": Laid(_CONV, _IMAGES),
    "conv2d_transposed": Laid(_moving("ConvTranspose"), _TRANSPOSED),
    "conv1d": Laid(_CONV, _SEQUENCES),
    "conv3d": Laid(_CONV, _VOLUMES),
}


GAPS: tuple[Gap, ...] = ()
