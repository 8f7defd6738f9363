"""NumPy: normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

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

Array = NDArray[Any]


def _standard(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """One pass for the mean, one for the variance."""
    centred = x - x.mean(axes, keepdims=True)
    variance = np.mean(np.square(centred), axes, keepdims=True)
    return centred / np.sqrt(variance + x.dtype.type(epsilon))


def _along(*axes: int, epsilon: float = EPSILON) -> Any:
    """Normalisation by the moments along axes."""
    return lambda x, gamma, beta: _standard(x, axes, epsilon) * gamma + beta


def _batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> Array:
    """The vectors are combined first: a product and a sum for each element."""
    factor = gamma / np.sqrt(variance + x.dtype.type(BATCH_EPSILON))
    return x * factor + (beta - mean * factor)


def _rms_norm(x: Array, gamma: Array) -> Array:
    mean = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(mean + x.dtype.type(EPSILON)) * gamma


def _group_norm(x: Array, gamma: Array, beta: Array) -> Array:
    grouped = x.reshape(*x.shape[:-1], GROUPS, -1)
    return _standard(grouped, (1, 2, 4), EPSILON).reshape(x.shape) * gamma + beta


def _local_response(x: Array) -> Array:
    squares = np.pad(np.square(x), [(0, 0)] * 3 + [(NEIGHBOURS // 2,) * 2])
    total = sliding_window_view(squares, NEIGHBOURS, axis=-1).sum(axis=-1)
    return np.asarray(x / (BIAS + ALPHA * total) ** BETA)


OPERATIONS: Table = {
    "batch_norm_training": lambda np: _along(0, 1, 2, epsilon=BATCH_EPSILON),
    "batch_norm_inference": lambda np: _batch_norm_inference,
    "layer_norm": lambda np: _along(-1),
    "rms_norm": lambda np: _rms_norm,
    "group_norm": lambda np: _group_norm,
    "instance_norm": lambda np: _along(1, 2),
    "lrn": lambda np: _local_response,
}

GAPS: tuple[Gap, ...] = ()
