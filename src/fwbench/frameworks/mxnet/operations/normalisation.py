"""MXNet: normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout, axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)

_IMAGES = axes("nhwc->nchw", results=["nhwc->nchw"])


def _with_vectors(elements: Sequence[int | None], shape: tuple[int, ...] = (-1,)) -> Layout:
    """Images with the channels first, vectors in another shape, and zeros and ones behind them.

    Args:
        elements: of the zeros and the ones; None for one for each channel.
        shape: of the operation's own vectors.
    """

    def place(arrays: Arrays) -> list[NDArray[Any]]:
        x, *vectors = _IMAGES.place(arrays)
        ones = [np.full(n or x.shape[1], i, x.dtype) for i, n in enumerate(elements)]
        return [x, *(vector.reshape(shape) for vector in vectors), *ones]

    def restore(arrays: Arrays) -> list[NDArray[Any]]:
        x, *vectors = _IMAGES.restore(arrays[:3])
        return [x, *(vector.reshape(-1) for vector in vectors)]

    return Layout(place, restore, _IMAGES.place_results, _IMAGES.restore_results)


def _group_norm(F: Any) -> Any:
    """Its own factors and offsets are the groups', not the channels'."""

    def group_norm(x: Any, gamma: Any, beta: Any, zeros: Any, ones: Any) -> Any:
        standard = F.GroupNorm(x, ones, zeros, num_groups=GROUPS, eps=EPSILON)
        return F.broadcast_add(F.broadcast_mul(standard, gamma), beta)

    return group_norm


def _rms_norm(F: Any) -> Any:
    def rms_norm(x: Any, gamma: Any) -> Any:
        mean = F.mean(F.square(x), axis=-1, keepdims=True)
        return F.broadcast_mul(F.broadcast_mul(x, F.rsqrt(mean + EPSILON)), gamma)

    return rms_norm


OPERATIONS: Table = {
    # A momentum of 1 leaves its running statistics as they are; they begin with 0 and 1.
    "batch_norm_training": Laid(
        Call("BatchNorm", eps=BATCH_EPSILON, momentum=1.0, fix_gamma=False),
        _with_vectors((None, None)),
    ),
    "batch_norm_inference": Laid(
        Call("BatchNorm", eps=BATCH_EPSILON, fix_gamma=False, use_global_stats=True), _IMAGES
    ),
    "layer_norm": Call("LayerNorm", axis=-1, eps=EPSILON),
    "rms_norm": _rms_norm,
    "group_norm": Laid(_group_norm, _with_vectors((GROUPS, GROUPS), (1, -1, 1, 1))),
    "instance_norm": Laid(Call("InstanceNorm", eps=EPSILON), _IMAGES),
    # MXNet divides alpha by the number of channels.
    "lrn": Laid(
        Call("LRN", nsize=NEIGHBOURS, alpha=NEIGHBOURS * ALPHA, beta=BETA, knorm=BIAS), _IMAGES
    ),
}

GAPS: tuple[Gap, ...] = (
    Gap(
        "mxnet normalises by the batch only while it records a gradient",
        "batch_norm_training",
        direction="forward",
    ),
    *(
        Gap("mxnet takes the vectors of a float16 batch norm in float32", name, dtype="float16")
        for name in ("batch_norm_training", "batch_norm_inference")
    ),
    *(
        Gap(f"mxnet computes its {function} in float32 alone", name, dtype=dtype)
        for name, function in (("instance_norm", "InstanceNorm"), ("lrn", "LRN"))
        for dtype in ("float64", "float16")
    ),
)
