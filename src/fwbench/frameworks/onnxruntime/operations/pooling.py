"""ONNX Runtime: pooling."""

from __future__ import annotations

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_IMAGES = axes("nhwc->nchw", results=["nhwc->nchw"])
_SEQUENCES = axes("nlc->ncl", results=["nlc->ncl"])


def _pool(operator: str, size: int, stride: int, rank: int = 2) -> Call:
    return Call(operator, kernel_shape=[size] * rank, strides=[stride] * rank)


OPERATIONS: Table = {
    "max_pool2d": Laid(_pool("MaxPool", 2, 2), _IMAGES),
    "max_pool2d_3x3_s2": Laid(_pool("MaxPool", 3, 2), _IMAGES),
    "avg_pool2d": Laid(_pool("AveragePool", 2, 2), _IMAGES),
    "global_avg_pool": Laid("GlobalAveragePool", _IMAGES),
    "max_pool1d": Laid(_pool("MaxPool", 2, 2, rank=1), _SEQUENCES),
}


GAPS: tuple[Gap, ...] = ()
