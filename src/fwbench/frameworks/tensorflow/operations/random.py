"""TensorFlow: random numbers, by its global generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.random import DROPPED


def _filled(name: str) -> Implementation:
    """An implementation of ``tf.random.<name>((n,), dtype=...)``."""
    return lambda tf, n: lambda like: getattr(tf.random, name)((n,), dtype=like.dtype)


def _exponential(tf: Any, n: int) -> Callable[..., Any]:
    """By the logarithm: TensorFlow has none.

    Uniform numbers of 8 or 11 bits are too coarse for it, and in XLA some of them are 1.
    """

    def draw(like: Any) -> Any:
        wide = tf.float64 if like.dtype == tf.float64 else tf.float32
        return tf.cast(tf.math.log(1 - tf.random.uniform((n,), dtype=wide)) / -2, like.dtype)

    return draw


#: Logarithms of the probabilities, of a batch of one.
_LOGITS = Layout(
    place=lambda operands: [np.log(operands[0])[np.newaxis]],
    restore=lambda operands: [np.exp(operands[0][0])],
    restore_results=lambda results: [results[0][0]],
)

OPERATIONS: Table = {
    "random_uniform": _filled("uniform"),
    "random_normal": _filled("normal"),
    "random_bernoulli": lambda tf: (
        lambda p: tf.cast(tf.random.uniform(p.shape, dtype=p.dtype) < p, p.dtype)
    ),
    "random_integers": lambda tf, n: lambda like: tf.random.uniform((n,), 0, 100, tf.int32),
    "random_gamma": lambda tf: lambda alpha: tf.random.gamma((), alpha, dtype=alpha.dtype),
    "random_poisson": lambda tf: lambda rates: tf.random.poisson((), rates, dtype=rates.dtype),
    "random_exponential": _exponential,
    "random_shuffle": "random.shuffle",
    "random_categorical": Laid(
        lambda tf, n: lambda logits: tf.random.categorical(logits, n), _LOGITS
    ),
    "dropout": Call("nn.dropout", rate=DROPPED),
}

GAPS: tuple[Gap, ...] = tuple(
    gap
    for name in ("gamma", "poisson")
    for gap in (
        Gap(f"tensorflow has no {name} numbers in XLA", f"random_{name}", execution="xla"),
        Gap(f"tensorflow has no bfloat16 {name} numbers", f"random_{name}", dtype="bfloat16"),
    )
)
