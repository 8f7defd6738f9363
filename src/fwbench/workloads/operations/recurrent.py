"""Recurrent layers over a batch of sequences, with as many inputs as units, as DeepBench has them.

Operands are the sequences (batch, time, inputs), the weights of inputs and of units, a column for
every unit of every gate, and biases. The result is the state of the units at every time; the first
state is zero.

``dynamic_rnn`` is an LSTM over sequences of different lengths, step by step: what is measured is
the loop, inside of a graph or outside of it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Array = NDArray[Any]

_SIZES = sizes_of("recurrent")

#: In bfloat16 each step rounds the state. Seen in gradients: 1.5 (JAX, 16 steps, of 120 draws).
_ROUNDED_STATES = 3.0

#: Operations for a unit in addition to the products.
_LSTM_POINTWISE = 17


def _sequences(gates: int, biases: int, size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """Sequences, weights and biases, so small that differences show the gradient by weights.

    A weight acts at every time, and all that have an unit move together.
    """
    units, columns = size["h"], gates * size["h"]
    weights = (rng.standard_normal((units, columns)) / np.sqrt(4 * units) for _ in range(2))
    others = (0.2 * rng.standard_normal(columns) for _ in range(biases))
    sequences = 0.5 * rng.standard_normal((size["n"], size["t"], units))
    return sequences, *weights, *others


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _rnn(x: Array, w: Array, u: Array, b: Array, units: int) -> Array:
    """Elman, "Finding structure in time" (1990), with tanh."""
    state, states = np.zeros((len(x), units)), []
    for now in (x @ w + b).swapaxes(0, 1):
        state = np.tanh(now + state @ u)
        states.append(state)
    return np.stack(states, axis=1)


def _lstm(x: Array, w: Array, u: Array, b: Array, units: int) -> Array:
    """Gers, Schmidhuber, Cummins, "Learning to forget" (2000); gates: input, forget, cell, output.

    There are no peepholes.
    """
    state, cell, states = np.zeros((len(x), units)), np.zeros((len(x), units)), []
    for now in (x @ w + b).swapaxes(0, 1):
        state, cell = _lstm_step(now + state @ u, cell)
        states.append(state)
    return np.stack(states, axis=1)


def _lstm_step(sums: Array, cell: Array) -> tuple[Array, Array]:
    """State and cell after a step, of the sums that the gates begin with and the cell before it."""
    entry, keep, new, exit_ = np.split(sums, 4, axis=-1)
    cell = _sigmoid(keep) * cell + _sigmoid(entry) * np.tanh(new)
    return _sigmoid(exit_) * np.tanh(cell), cell


def _dynamic_rnn(
    x: Array, w: Array, u: Array, b: Array, lengths: Array, units: int, steps: int
) -> tuple[Array, Array]:
    """The states of an LSTM, zero behind the end of each sequence; and its state at that end.

    As TensorFlow 1's ``tf.nn.dynamic_rnn`` has them.
    """
    state, cell = np.zeros((len(x), units)), np.zeros((len(x), units))
    sums, states = (x @ w + b).swapaxes(0, 1), []
    for step in range(steps):
        within = (step < lengths)[:, None]
        after = _lstm_step(sums[step] + state @ u, cell)
        state, cell = np.where(within, after, (state, cell))
        states.append(np.where(within, state, 0.0))
    return np.stack(states, axis=1), state


def _lengths(size: Shape) -> Array:
    """From all times down to half of them, evenly."""
    batch, longest = size["n"], size["t"]
    return longest - longest * np.arange(batch) // (2 * batch)


def _with_lengths(size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """An LSTM's operands, and the length of each sequence."""
    return *_sequences(4, 1, size, rng), rng.permutation(_lengths(size))


def _dynamic_cost(passes: int, operands: int, results: int, size: Shape) -> Cost:
    """The steps within the sequences: those behind their ends need not be done."""
    units, batch = size["h"], size["n"]
    arrays = batch * size["t"] * units + 4 * units * (2 * units + 1)
    elements = operands * arrays + results * (batch * size["t"] * units + batch * units) + batch
    flops = passes * _flops(4, _LSTM_POINTWISE, units) * int(_lengths(size).sum())
    return Cost(float(flops), float(elements))


def _flops(gates: int, pointwise: int, units: int) -> int:
    """Operations in a step of one sequence."""
    return 2 * 2 * units * gates * units + pointwise * units


def _gru(x: Array, w: Array, u: Array, b: Array, c: Array, units: int) -> Array:
    """Cho et al. (2014), as cuDNN has it: the reset gate follows on the product, and its bias.

    Gates: update, reset, new.
    """
    state, states = np.zeros((len(x), units)), []
    for now in (x @ w + b).swapaxes(0, 1):
        (z, r, n), (of_z, of_r, of_n) = (
            np.split(sums, 3, axis=-1) for sums in (now, state @ u + c)
        )
        update = _sigmoid(z + of_z)
        state = update * state + (1 - update) * np.tanh(n + _sigmoid(r + of_r) * of_n)
        states.append(state)
    return np.stack(states, axis=1)


def _recurrent(
    name: str, reference: Callable[..., Array], *, gates: int, pointwise: int, biases: int = 1
) -> Operation:
    """A layer with gates, and operations for a unit in addition to the products."""

    def cost(passes: int, operands: int, results: int, size: Shape) -> Cost:
        units, steps = size["h"], size["n"] * size["t"]
        columns, step_flops = gates * units, _flops(gates, pointwise, units)
        arrays = steps * units + columns * (2 * units + biases)
        elements = operands * arrays + results * steps * units
        return Cost(float(passes * steps * step_flops), float(elements))

    return Operation(
        name=name,
        inputs=partial(_sequences, gates, biases),
        reference=reference,
        sizes=_SIZES[name],
        cost=lambda size: cost(1, 1, 1, size),
        # Two more products for each one of forward; then read the operands and the gradient of
        # the result, and write a gradient for each operand.
        backward_cost=lambda size: cost(3, 3, 2, size),
        terms=lambda size: 2 * size["h"] * size["t"],
        tolerance=_ROUNDED_STATES,
        parameters=lambda size: (size["h"],),
    )


RECURRENT = family(
    "recurrent",
    # The one that is used most, with most gates.
    ("lstm",),
    _recurrent("rnn", _rnn, gates=1, pointwise=3),
    _recurrent("lstm", _lstm, gates=4, pointwise=_LSTM_POINTWISE),
    _recurrent("gru", _gru, gates=3, pointwise=17, biases=2),
    Operation(
        name="dynamic_rnn",
        inputs=_with_lengths,
        reference=_dynamic_rnn,
        sizes=_SIZES["dynamic_rnn"],
        cost=lambda size: _dynamic_cost(1, 1, 1, size),
        backward_cost=lambda size: _dynamic_cost(3, 3, 2, size),
        terms=lambda size: 2 * size["h"] * size["t"],
        tolerance=_ROUNDED_STATES,
        variables=(0, 1, 2, 3),
        parameters=lambda size: (size["h"], size["t"]),
        switched_by=("loop",),
    ),
)
