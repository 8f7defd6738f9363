"""TensorFlow: normalisation. Other than by batch it is composed, as in Keras."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from fwbench.frameworks.table import Call, Table
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


def _batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, gamma, beta, epsilon=BATCH_EPSILON)[0]


def _batch_norm_inference(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, BATCH_EPSILON)


def _along(*axes: int) -> Any:
    """Normalisation by the moments along axes."""

    def norm(x: Any, gamma: Any, beta: Any) -> Any:
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, EPSILON)

    return norm


def _rms_norm(x: Any, gamma: Any) -> Any:
    mean = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    return x * tf.math.rsqrt(mean + EPSILON) * gamma


def _group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    grouped = tf.reshape(x, (*x.shape[:-1], GROUPS, x.shape[-1] // GROUPS))
    mean, variance = tf.nn.moments(grouped, (1, 2, 4), keepdims=True)
    standard = tf.nn.batch_normalization(grouped, mean, variance, None, None, EPSILON)
    return tf.reshape(standard, x.shape) * gamma + beta


OPERATIONS: Table = {
    "batch_norm_training": lambda tf: _batch_norm,
    "batch_norm_inference": lambda tf: _batch_norm_inference,
    "layer_norm": lambda tf: _along(-1),
    "rms_norm": lambda tf: _rms_norm,
    "group_norm": lambda tf: _group_norm,
    "instance_norm": lambda tf: _along(1, 2),
    "lrn": Call(
        "nn.local_response_normalization",
        depth_radius=NEIGHBOURS // 2,
        bias=BIAS,
        alpha=ALPHA,
        beta=BETA,
    ),
}

_VECTORS = "tensorflow's fused batch norm takes vectors of float32 alone"

GAPS: tuple[Gap, ...] = (
    *(Gap(_VECTORS, "batch_norm_training", dtype=dtype) for dtype in ("float16", "bfloat16")),
    Gap("tensorflow has no fused batch norm in float64", "batch_norm_training", dtype="float64"),
    Gap("tensorflow's LRN has no float64", "lrn", dtype="float64"),
    Gap("tensorflow has no bfloat16 LRN on the CPU", "lrn", dtype="bfloat16", device="cpu"),
    Gap("XLA multiplies float16 by float32 in its LRN, and fails", "lrn", "xla", dtype="float16"),
)
