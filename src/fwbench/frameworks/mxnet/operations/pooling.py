"""MXNet: pooling."""

from __future__ import annotations

from functools import partial

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_IMAGES = axes("nhwc->nchw", results=["nhwc->nchw"])
_SEQUENCES = axes("nlc->ncl", results=["nlc->ncl"])

_pooling = partial(Call, "Pooling")
_global = partial(_pooling, global_pool=True, kernel=(1, 1))

OPERATIONS: Table = {
    "max_pool2d": Laid(_pooling(pool_type="max", kernel=(2, 2), stride=(2, 2)), _IMAGES),
    "max_pool2d_3x3_s2": Laid(_pooling(pool_type="max", kernel=(3, 3), stride=(2, 2)), _IMAGES),
    "avg_pool2d": Laid(_pooling(pool_type="avg", kernel=(2, 2), stride=(2, 2)), _IMAGES),
    "global_avg_pool": Laid(_global(pool_type="avg"), _IMAGES),
    "max_pool1d": Laid(_pooling(pool_type="max", kernel=(2,), stride=(2,)), _SEQUENCES),
}

GAPS: tuple[Gap, ...] = ()
