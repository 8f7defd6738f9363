"""MXNet: recurrent layers, by one operator that has all weights and biases in one vector.

The operator's sequences have time before the batch; the first states are operands, as ``gluon.rnn``
gives them. There are two biases; where the definition has one the second is zero.
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


def _python_foreach(F: Any, steps: int) -> Callable[..., Any]:
    """As ``F.contrib.foreach``, by a loop of Python's, which a symbol unrolls."""

    def split(x: Any) -> Any:
        parts = F.SliceChannel(x, num_outputs=steps, axis=0, squeeze_axis=True)
        return parts if steps > 1 else [parts]

    def foreach(body: Callable[..., Any], data: Any, states: Any) -> tuple[Any, Any]:
        results = []
        for now in zip(*map(split, data), strict=True):
            result, states = body([*now], states)
            results.append(result)
        return F.stack(*results, axis=0), states

    return foreach


def _dynamic_rnn(F: Any, steps: int, loop: str) -> Callable[..., Any]:
    """An LSTM over sequences of different lengths, with time before the batch within the loop."""
    foreach = F.contrib.foreach if loop == "native" else _python_foreach(F, steps)

    def call(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
        x = F.swapaxes(x, dim1=0, dim2=1)
        within = F.SequenceMask(F.ones_like(x), lengths, use_sequence_length=True)
        first = F.squeeze(F.slice_axis(x, axis=0, begin=0, end=1), axis=0)
        zeros = [F.zeros_like(first) for _ in range(2)]  # foreach refuses one symbol twice

        def step(now: Any, states: Any) -> tuple[Any, Any]:
            (sums, within), (state, cell) = now, states
            entry, keep, new, exit_ = F.SliceChannel(sums + F.dot(state, u), num_outputs=4)
            after = F.sigmoid(keep) * cell + F.sigmoid(entry) * F.tanh(new)
            cell = F.where(within, after, cell)
            state = F.where(within, F.sigmoid(exit_) * F.tanh(after), state)
            return state * within, [state, cell]

        sums = F.broadcast_add(F.dot(x, w), b)
        results, (state, _) = foreach(step, [sums, within], zeros)
        return F.swapaxes(results, dim1=0, dim2=1), state

    return call


OPERATIONS: Table = {
    "rnn": _layer("rnn_tanh"),
    "lstm": _layer("lstm", states=2),
    "gru": _layer("gru", biases=2, order=reset_first),
    "dynamic_rnn": lambda F, units, steps, loop: _dynamic_rnn(F, steps, loop),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet has no float16 product on the CPU", name, dtype="float16", device="cpu")
    for name in OPERATIONS
)
