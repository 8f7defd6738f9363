"""JAX: softmax and losses, which it leaves to packages built on it (written as in Optax)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _cross_entropies(x: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1)


def _binary_cross_entropy(x: Any, answers: Any) -> Any:
    return jnp.mean(-answers * jax.nn.log_sigmoid(x) - (1 - answers) * jax.nn.log_sigmoid(-x))


def _huber(x: Any, y: Any) -> Any:
    distance = jnp.abs(x - y)
    return jnp.mean(jnp.where(distance < 1, 0.5 * jnp.square(distance), distance - 0.5))


OPERATIONS: Table = {
    "softmax": "nn.softmax",
    "log_softmax": "nn.log_softmax",
    "cross_entropy": lambda jax: lambda x, labels: jnp.mean(_cross_entropies(x, labels)),
    "cross_entropy_sum": lambda jax: lambda x, labels: jnp.sum(_cross_entropies(x, labels)),
    "binary_cross_entropy": lambda jax: _binary_cross_entropy,
    "mse": lambda jax: lambda x, y: jnp.mean(jnp.square(x - y)),
    "huber": lambda jax: _huber,
}

GAPS: tuple[Gap, ...] = (Gap("jax has no CTC loss; Optax has one", "ctc_loss"),)
