"""TensorFlow: pooling."""

from __future__ import annotations

from functools import partial

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

_max_pool2d = partial(Call, "nn.max_pool2d", padding="VALID", strides=2)

OPERATIONS: Table = {
    "max_pool2d": _max_pool2d(ksize=2),
    "max_pool2d_3x3_s2": _max_pool2d(ksize=3),
    "avg_pool2d": Call("nn.avg_pool2d", ksize=2, strides=2, padding="VALID"),
    "global_avg_pool": Call("reduce_mean", axis=(1, 2), keepdims=True),
    "max_pool1d": Call("nn.max_pool1d", ksize=2, strides=2, padding="VALID"),
}

GAPS: tuple[Gap, ...] = ()
