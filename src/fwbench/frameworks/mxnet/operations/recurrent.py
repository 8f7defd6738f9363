"""MXNet: recurrent layers, by one operator that has all weights and biases in one vector.

Its sequences have time before the batch; the first states are operands, as ``gluon.rnn`` gives
them. There are two biases; where the definition has one the second is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout, reset_first
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap


def _by_time(arrays: Arrays) -> list[NDArray[Any]]:
    """Time before the batch, or the batch before time: one is the inverse of the other."""
    return [np.ascontiguousarray(x.swapaxes(0, 1)) for x in arrays]


def _place(
    states: int, order: Callable[[NDArray[Any]], NDArray[Any]], arrays: Arrays
) -> list[NDArray[Any]]:
    x, *weights = arrays
    w, u, *biases = map(order, weights)
    second = biases[1] if len(biases) > 1 else np.zeros_like(biases[0])
    packed = np.concatenate([w.T.ravel(), u.T.ravel(), biases[0], second])
    zeros = np.zeros((1, len(x), len(u)), x.dtype)
    return [*_by_time([x]), packed, *[zeros] * states]


def _restore(
    biases: int, order: Callable[[NDArray[Any]], NDArray[Any]], arrays: Arrays
) -> list[NDArray[Any]]:
    """There are as many inputs as units, which tells how many columns there are."""
    x, packed = arrays[:2]
    units = x.shape[-1]
    columns = len(packed) // (2 * units + 2)
    w, u = (part.reshape(columns, units).T for part in np.split(packed[: -2 * columns], 2))
    both = np.split(packed[-2 * columns :], 2)
    return [*_by_time([x]), *map(order, (w, u, *both[:biases]))]


def _layer(
    mode: str,
    states: int = 1,
    biases: int = 1,
    order: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray,
) -> Laid:
    layout = Layout(
        partial(_place, states, order), partial(_restore, biases, order), _by_time, _by_time
    )
    return Laid(lambda F, units: partial(F.RNN, state_size=units, num_layers=1, mode=mode), layout)


OPERATIONS: Table = {
    "rnn": _layer("rnn_tanh"),
    "lstm": _layer("lstm", states=2),
    "gru": _layer("gru", biases=2, order=reset_first),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet has no float16 product on the CPU", name, dtype="float16", device="cpu")
    for name in OPERATIONS
)
