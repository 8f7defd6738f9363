"""JAX: recurrent layers, by ``lax.scan`` over time; JAX has none.

Weights go from step to step with the state: steps are compiled once, not once a call, if they
close over nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _scanned(step: Any, x: Any, w: Any, b: Any, weights: tuple[Any, ...], state: Any) -> Any:
    """The states at every time."""
    sums = jnp.swapaxes(x @ w + b, 0, 1)
    _, states = jax.lax.scan(step, (state, weights), sums)
    return jnp.swapaxes(states, 0, 1)


def _rnn_step(carried: Any, now: Any) -> Any:
    state, (u,) = carried
    state = jnp.tanh(now + state @ u)
    return (state, (u,)), state


def _lstm_step(carried: Any, now: Any) -> Any:
    (state, cell), (u,) = carried
    entry, keep, new, exit_ = jnp.split(now + state @ u, 4, axis=-1)
    cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(entry) * jnp.tanh(new)
    state = jax.nn.sigmoid(exit_) * jnp.tanh(cell)
    return ((state, cell), (u,)), state


def _gru_step(carried: Any, now: Any) -> Any:
    state, (u, c) = carried
    z, r, n = jnp.split(now, 3, axis=-1)
    of_z, of_r, of_n = jnp.split(state @ u + c, 3, axis=-1)
    update = jax.nn.sigmoid(z + of_z)
    state = update * state + (1 - update) * jnp.tanh(n + jax.nn.sigmoid(r + of_r) * of_n)
    return (state, (u, c)), state


def _zeros(x: Any, units: int) -> Any:
    return jnp.zeros((len(x), units), x.dtype)


OPERATIONS: Table = {
    "rnn": lambda jax, units: (
        lambda x, w, u, b: _scanned(_rnn_step, x, w, b, (u,), _zeros(x, units))
    ),
    "lstm": lambda jax, units: (
        lambda x, w, u, b: _scanned(_lstm_step, x, w, b, (u,), (_zeros(x, units), _zeros(x, units)))
    ),
    "gru": lambda jax, units: (
        lambda x, w, u, b, c: _scanned(_gru_step, x, w, b, (u, c), _zeros(x, units))
    ),
}

GAPS: tuple[Gap, ...] = ()
