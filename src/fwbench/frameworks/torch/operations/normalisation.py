"""PyTorch: normalisation."""

from __future__ import annotations

from typing import Any

from torch.nn import functional

from fwbench.frameworks.layout import axes
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


def _batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
    """Without running statistics, which it would change."""
    return functional.batch_norm(x, None, None, gamma, beta, training=True, eps=BATCH_EPSILON)


def _batch_norm_inference(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    return functional.batch_norm(x, mean, variance, gamma, beta, eps=BATCH_EPSILON)


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.layer_norm(x, gamma.shape, gamma, beta, EPSILON)


def _rms_norm(x: Any, gamma: Any) -> Any:
    return functional.rms_norm(x, gamma.shape, gamma, EPSILON)


def _group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.group_norm(x, GROUPS, gamma, beta, EPSILON)


def _instance_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.instance_norm(x, None, None, gamma, beta, eps=EPSILON)


OPERATIONS: Table = {
    "batch_norm_training": Laid(lambda torch: _batch_norm, _IMAGES),
    "batch_norm_inference": Laid(lambda torch: _batch_norm_inference, _IMAGES),
    "layer_norm": lambda torch: _layer_norm,
    "rms_norm": lambda torch: _rms_norm,
    "group_norm": Laid(lambda torch: _group_norm, _IMAGES),
    "instance_norm": Laid(lambda torch: _instance_norm, _IMAGES),
    # PyTorch divides alpha by the number of channels.
    "lrn": Laid(
        Call(
            "nn.functional.local_response_norm",
            size=NEIGHBOURS,
            alpha=NEIGHBOURS * ALPHA,
            beta=BETA,
            k=BIAS,
        ),
        _IMAGES,
    ),
}

GAPS: tuple[Gap, ...] = (
    *(
        Gap(
            f"torch has no {dtype} pooling over channels on the CPU",
            "lrn",
            dtype=dtype,
            device="cpu",
        )
        for dtype in ("float16", "bfloat16")
    ),
    Gap(
        "torch adds up the gradients of layer_norm's vectors in bfloat16",
        "layer_norm",
        direction="backward",
        dtype="bfloat16",
        device="cpu",
        terms_above=64,
    ),
)
