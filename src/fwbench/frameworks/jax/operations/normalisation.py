"""JAX: normalisation, composed as in Flax."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from fwbench.frameworks.table import Table
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


def _standard(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    mean, variance = jnp.mean(x, axes, keepdims=True), jnp.var(x, axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + epsilon)


def _along(*axes: int, epsilon: float = EPSILON) -> Any:
    """Normalisation by the moments along axes."""
    return lambda x, gamma, beta: _standard(x, axes, epsilon) * gamma + beta


def _batch_norm_inference(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) * lax.rsqrt(variance + BATCH_EPSILON) * gamma + beta


def _rms_norm(x: Any, gamma: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + EPSILON) * gamma


def _group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    grouped = jnp.reshape(x, (*x.shape[:-1], GROUPS, -1))
    return jnp.reshape(_standard(grouped, (1, 2, 4), EPSILON), x.shape) * gamma + beta


def _local_response(x: Any) -> Any:
    """JAX has no function of its own for it."""
    window = (1, 1, 1, NEIGHBOURS)
    total = lax.reduce_window(jnp.square(x), 0.0, lax.add, window, (1, 1, 1, 1), "SAME")
    return x / (BIAS + ALPHA * total) ** BETA


OPERATIONS: Table = {
    "batch_norm_training": lambda jax: _along(0, 1, 2, epsilon=BATCH_EPSILON),
    "batch_norm_inference": lambda jax: _batch_norm_inference,
    "layer_norm": lambda jax: _along(-1),
    "rms_norm": lambda jax: _rms_norm,
    "group_norm": lambda jax: _group_norm,
    "instance_norm": lambda jax: _along(1, 2),
    "lrn": lambda jax: _local_response,
}

GAPS: tuple[Gap, ...] = ()
