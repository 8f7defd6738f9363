"""NumPy: softmax and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

Array = NDArray[Any]


def _softmax(x: Array) -> Array:
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(y / y.sum(axis=-1, keepdims=True))


def _log_softmax(x: Array) -> Array:
    y = x - x.max(axis=-1, keepdims=True)
    return np.asarray(y - np.log(np.exp(y).sum(axis=-1, keepdims=True)))


def _cross_entropies(x: Array, labels: Array) -> Array:
    """Of each row the logarithm of its sum of exponentials, less the number of its class."""
    top = x.max(axis=-1)
    total = np.exp(x - top[:, None]).sum(axis=-1)
    return np.asarray(np.log(total) + top - x[np.arange(len(x)), labels])


def _binary_cross_entropy(x: Array, answers: Array) -> Any:
    return np.mean(np.maximum(x, 0) - x * answers + np.log1p(np.exp(-np.abs(x))))


def _huber(x: Array, y: Array) -> Any:
    distance = np.abs(x - y)
    near = np.minimum(distance, 1)
    return np.mean(near * (distance - near / 2))


def _ctc_loss(x: Array, labels: Array) -> Array:
    """Shares of paths, divided by their sum at each time, whose logarithms add up to the loss."""
    path = np.zeros((len(x), 2 * labels.shape[1] + 3), int)
    path[:, 3::2] = labels
    skips = (path[:, 2:] != path[:, :-2]) & (path[:, 2:] > 0)
    shares = np.take_along_axis(_softmax(x), path[:, None, 2:], axis=2)
    alpha, loss = np.zeros(path.shape, x.dtype), np.zeros(len(x), x.dtype)
    alpha[:, 1] = 1
    for now in range(x.shape[1]):
        ahead = (alpha[:, 2:] + alpha[:, 1:-1] + alpha[:, :-2] * skips) * shares[:, now]
        total = ahead.sum(axis=1)
        alpha[:, 1] = 0
        alpha[:, 2:] = ahead / total[:, None]
        loss -= np.log(total)
    return np.asarray(loss - np.log(alpha[:, -2:].sum(axis=1)))


OPERATIONS: Table = {
    "softmax": lambda np: _softmax,
    "log_softmax": lambda np: _log_softmax,
    "cross_entropy": lambda np: lambda x, labels: np.mean(_cross_entropies(x, labels)),
    "cross_entropy_sum": lambda np: lambda x, labels: np.sum(_cross_entropies(x, labels)),
    "binary_cross_entropy": lambda np: _binary_cross_entropy,
    "mse": lambda np: lambda x, y: np.mean(np.square(x - y)),
    "huber": lambda np: _huber,
    "ctc_loss": lambda np, *_: _ctc_loss,
}

GAPS: tuple[Gap, ...] = ()
