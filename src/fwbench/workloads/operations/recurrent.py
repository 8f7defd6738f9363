"""Recurrent layers over a batch of sequences, with as many inputs as units, as DeepBench has them.

Operands are the sequences (batch, time, inputs), the weights of inputs and of units, a column for
every unit of every gate, and biases. The result is the state of the units at every time; the first
state is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Form, Shape
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Array = NDArray[Any]

#: h units, a batch of n sequences, t times.
FORM = Form("h{h}n{n}t{t}")

_QUICK = ("h32n4t8", "h64n16t16", "h128n16t32")
_FULL = ("h32n4t8", "h64n16t25", "h256n16t50", "h512n32t25", "h1024n32t25")

#: Baidu's DeepBench, code/kernels/rnn_problems.h: training, then inference on servers and devices.
DEEPBENCH = {
    "rnn": (
        *(f"h{h}n{n}t50" for h in (1760, 2048, 2560) for n in (16, 32, 64, 128)),
        *("h32n1t672", "h64n1t96"),
    ),
    "lstm": (
        *(f"h{h}n{n}t25" for h in (512, 1024, 2048, 4096) for n in (16, 32, 64, 128)),
        *(f"h1536n{n}t50" for n in (8, 16, 32)),
        *(f"h256n{n}t150" for n in (16, 32, 64)),
        *(f"h{h}n{n}t25" for h in (512, 1024, 2048) for n in (1, 2, 4)),
        *(f"h1536n{n}t50" for n in (1, 2, 4)),
        *(f"h256n{n}t150" for n in (1, 2, 4)),
    ),
    "gru": (
        *(f"h2816n32t{t}" for t in (750, 375, 187)),
        *(f"h{h}n32t{t}" for h in (2048, 1536, 2560) for t in (1500, 750, 375, 187)),
        *("h512n32t1", "h1024n32t1500", "h1024n64t1500"),
        *(
            f"h{h}n{n}t{t}"
            for h in (2816, 2048, 1536, 2560)
            for n in (1, 2, 4)
            for t in (1500, 750, 375, 187)
        ),
        *(f"h512n{n}t1" for n in (1, 2, 4)),
        *(f"h1024n{n}t1500" for n in (1, 2, 4)),
    ),
}


def _sequences(gates: int, biases: int, size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """Sequences, weights and biases, so small that differences tell the gradient by weights.

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
    state, cell, states = np.zeros((len(x), units)), 0.0, []
    for now in (x @ w + b).swapaxes(0, 1):
        entry, keep, new, exit_ = np.split(now + state @ u, 4, axis=-1)
        cell = _sigmoid(keep) * cell + _sigmoid(entry) * np.tanh(new)
        state = _sigmoid(exit_) * np.tanh(cell)
        states.append(state)
    return np.stack(states, axis=1)


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
    """A layer with so many gates, and so many operations for a unit beside the products."""

    def cost(passes: int, operands: int, results: int, size: Shape) -> Cost:
        units, steps = size["h"], size["n"] * size["t"]
        columns = gates * units
        each = 2 * 2 * units * columns + pointwise * units
        arrays = steps * units + columns * (2 * units + biases)
        elements = operands * arrays + results * steps * units
        return Cost(float(passes * steps * each), float(elements))

    return Operation(
        name=name,
        inputs=partial(_sequences, gates, biases),
        reference=reference,
        sizes=FORM.sizes(quick=_QUICK, full=_FULL, deepbench=DEEPBENCH[name]),
        cost=lambda size: cost(1, 1, 1, size),
        # Two more products for each one of forward; then read the operands and the gradient of
        # the result, and write a gradient for each operand.
        backward_cost=lambda size: cost(3, 3, 2, size),
        terms=lambda size: 2 * size["h"] * size["t"],
        parameters=lambda size: (size["h"],),
    )


RECURRENT = family(
    "recurrent",
    # The one that is used most, with most gates.
    ("lstm",),
    _recurrent("rnn", _rnn, gates=1, pointwise=3),
    _recurrent("lstm", _lstm, gates=4, pointwise=17),
    _recurrent("gru", _gru, gates=3, pointwise=17, biases=2),
)
