"""JAX: recurrent layers, by ``lax.scan`` over time; JAX has none.

Weights go from step to step with the state: steps are compiled once, not once a call, if they
close over nothing.
"""

from __future__ import annotations

from functools import partial
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


def _masked_step(carried: Any, now: Any) -> Any:
    """State and cell stay what they were where a sequence has ended."""
    before, weights = carried
    sums, within = now
    (after, _), _ = _lstm_step(carried, sums)
    state, cell = (jnp.where(within, *each) for each in zip(after, before, strict=True))
    return ((state, cell), weights), jnp.where(within, state, 0)


def _python_scan(step: Any, carried: Any, operands: Any) -> Any:
    """As ``lax.scan``, by a loop of Python's, which jit unrolls."""
    results = []
    for now in zip(*map(jnp.unstack, operands), strict=True):
        carried, result = step(carried, now)
        results.append(result)
    return carried, jnp.stack(results)


_LOOPS = {"native": jax.lax.scan, "python": _python_scan}


def _dynamic_rnn(loop: Any, x: Any, w: Any, u: Any, b: Any, lengths: Any) -> tuple[Any, Any]:
    zeros = _zeros(x, len(w))
    sums = jnp.swapaxes(x @ w + b, 0, 1)
    within = (jnp.arange(x.shape[1])[:, None] < lengths)[..., None]
    ((state, _), _), states = loop(_masked_step, ((zeros, zeros), (u,)), (sums, within))
    return jnp.swapaxes(states, 0, 1), state


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
    "dynamic_rnn": lambda jax, units, steps, loop: partial(_dynamic_rnn, _LOOPS[loop]),
}

GAPS: tuple[Gap, ...] = ()
