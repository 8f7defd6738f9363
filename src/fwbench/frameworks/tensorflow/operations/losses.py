"""TensorFlow: softmax and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap


def _cross_entropy(x: Any, labels: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))


def _cross_entropy_sum(x: Any, labels: Any) -> Any:
    return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))


def _binary_cross_entropy(x: Any, answers: Any) -> Any:
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(answers, x))


def _mse(x: Any, y: Any) -> Any:
    return tf.reduce_mean(tf.math.squared_difference(x, y))


def _huber(x: Any, y: Any) -> Any:
    """As ``tf.keras.losses.huber``, which computes in float32 whatever the dtype."""
    distance = tf.abs(x - y)
    return tf.reduce_mean(tf.where(distance < 1, 0.5 * tf.square(distance), distance - 0.5))


def _ctc_loss(tf: Any, n: int, times: int, labels: int) -> Any:
    """Of dense labels."""
    lengths = tf.fill([n], labels), tf.fill([n], times)

    def ctc_loss(x: Any, y: Any) -> Any:
        return tf.nn.ctc_loss(y, x, *lengths, logits_time_major=False, blank_index=0)

    return ctc_loss


def _labels_as(dtype: type[np.integer[Any]]) -> Any:
    def converted(arrays: Arrays) -> list[NDArray[Any]]:
        x, labels = arrays
        return [x, labels.astype(dtype)]

    return converted


OPERATIONS: Table = {
    "softmax": "nn.softmax",
    "log_softmax": "nn.log_softmax",
    "cross_entropy": lambda tf: _cross_entropy,
    "cross_entropy_sum": lambda tf: _cross_entropy_sum,
    "binary_cross_entropy": lambda tf: _binary_cross_entropy,
    "mse": lambda tf: _mse,
    "huber": lambda tf: _huber,
    "ctc_loss": Laid(_ctc_loss, Layout(_labels_as(np.int32), _labels_as(np.int64))),
}

GAPS: tuple[Gap, ...] = (
    Gap(
        "tensorflow's CTC loss has numbers of float32, whatever the dtype",
        "ctc_loss",
        dtype="float64",
    ),
    *(
        Gap(
            "tensorflow adds up a mean of float16 in float16, which has nothing beyond 65504",
            operation,
            execution,
            dtype="float16",
            device="cpu",
            terms_above=16 * 1024,
        )
        for operation in ("binary_cross_entropy", "mse", "huber")
        for execution in ("eager", "graph")
    ),
)
