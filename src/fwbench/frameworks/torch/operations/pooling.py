"""PyTorch: pooling."""

from __future__ import annotations

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_IMAGES = axes("nhwc->nchw", results=["nhwc->nchw"])
_SEQUENCES = axes("nlc->ncl", results=["nlc->ncl"])

OPERATIONS: Table = {
    "max_pool2d": Laid(Call("nn.functional.max_pool2d", kernel_size=2), _IMAGES),
    "max_pool2d_3x3_s2": Laid(Call("nn.functional.max_pool2d", kernel_size=3, stride=2), _IMAGES),
    "avg_pool2d": Laid(Call("nn.functional.avg_pool2d", kernel_size=2), _IMAGES),
    "global_avg_pool": Laid(Call("nn.functional.adaptive_avg_pool2d", output_size=1), _IMAGES),
    "max_pool1d": Laid(Call("nn.functional.max_pool1d", kernel_size=2), _SEQUENCES),
}

GAPS: tuple[Gap, ...] = ()
