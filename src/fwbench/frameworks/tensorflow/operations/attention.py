"""TensorFlow: attention, by the formula; only Keras has a function for it, which does the same."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _scores(q: Any, k: Any) -> Any:
    return tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5


def _attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(_scores(q, k)), v)


def _causal(q: Any, k: Any, v: Any) -> Any:
    before = tf.linalg.band_part(tf.ones([q.shape[-2]] * 2, tf.bool), -1, 0)
    return tf.matmul(tf.nn.softmax(tf.where(before, _scores(q, k), q.dtype.min)), v)


OPERATIONS: Table = {
    "attention": lambda tf: _attention,
    "attention_causal": lambda tf: _causal,
}

GAPS: tuple[Gap, ...] = ()
