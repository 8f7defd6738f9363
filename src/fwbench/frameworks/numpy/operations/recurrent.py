"""NumPy: recurrent layers, which it does not have; a loop of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

Array = NDArray[Any]


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _dynamic_rnn(x: Array, w: Array, u: Array, b: Array, lengths: Array) -> tuple[Array, Array]:
    batch, steps, units = x.shape
    state = cell = np.zeros((batch, units), x.dtype)
    states = np.empty_like(x)
    within = np.arange(steps)[:, None, None] < lengths[:, None]
    sums = (x @ w + b).swapaxes(0, 1)
    for step, inside in enumerate(within):
        entry, keep, new, exit_ = np.split(sums[step] + state @ u, 4, axis=-1)
        after = _sigmoid(keep) * cell + _sigmoid(entry) * np.tanh(new)
        cell = np.where(inside, after, cell)
        state = np.where(inside, _sigmoid(exit_) * np.tanh(after), state)
        states[:, step] = state * inside
    return states, state


OPERATIONS: Table = {"dynamic_rnn": lambda np, units, steps, loop: _dynamic_rnn}

GAPS: tuple[Gap, ...] = tuple(
    Gap("numpy has no recurrent layers", name) for name in ("rnn", "lstm", "gru")
)
