"""ONNX Runtime: normalisation."""

from __future__ import annotations

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    NEIGHBOURS,
)

_IMAGES = axes("nhwc->nchw", results=["nhwc->nchw"])

OPERATIONS: Table = {
    "batch_norm_inference": Laid(Call("BatchNormalization", epsilon=BATCH_EPSILON), _IMAGES),
    "layer_norm": Call("LayerNormalization", axis=-1, epsilon=EPSILON),
    "instance_norm": Laid(Call("InstanceNormalization", epsilon=EPSILON), _IMAGES),
    # ONNX divides alpha by the number of channels.
    "lrn": Laid(
        Call("LRN", size=NEIGHBOURS, alpha=NEIGHBOURS * ALPHA, beta=BETA, bias=BIAS), _IMAGES
    ),
}


GAPS: tuple[Gap, ...] = ()
