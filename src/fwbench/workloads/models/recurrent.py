"""The LSTM and the GRU in NumPy, in float64, with the way back."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.models.layer import Arrays

Array = NDArray[np.float64]


def lstm(
    parameters: Arrays, x: Array, rounded: Any = np.asarray
) -> tuple[Array, Callable[[Array], tuple[Arrays, Arrays]]]:
    """The output of an LSTM at every place, and the way back: through time (Werbos 1990).

    Args:
        parameters: both kernels and the bias, float64.
        rounded: what is kept of gates, cells and outputs at each step.

    Returns:
        (batch, length, units), and a function from the gradient with respect to that.
    """
    kernel, recurrent, bias = parameters
    gates, cells, outputs = _states(x @ kernel + bias, recurrent, rounded)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        slopes = _slopes(gates, cells, recurrent, gradient)
        of_kernels = [
            np.tensordot(inputs, slopes, ([0, 1], [0, 1])) for inputs in (x, outputs[:, :-1])
        ]
        return [slopes @ kernel.T], [*of_kernels, slopes.sum((0, 1))]

    return outputs[:, 1:], backward


def gru(
    parameters: Arrays, x: Array, rounded: Any = np.asarray
) -> tuple[Array, Callable[[Array], tuple[Arrays, Arrays]]]:
    """The output of a GRU at every place, and the way back; see :func:`lstm`.

    Args:
        parameters: both kernels and both biases, float64.
        rounded: what is kept of sums, gates and outputs at each step.
    """
    kernel, recurrent, (bias, of_outputs) = parameters
    batch, length, _ = x.shape
    units = len(recurrent)
    sums, outputs = x @ kernel + bias, np.zeros((batch, length + 1, units))
    kept = np.empty((length, 4, batch, units))
    for t in range(length):
        product = rounded(outputs[:, t] @ recurrent + of_outputs)
        *before, entering = np.split(rounded(sums[:, t]), 3, axis=1)
        *now, again = np.split(product, 3, axis=1)
        update, reset = rounded(_sigmoid(np.add(before, now)))
        new = rounded(np.tanh(entering + reset * again))
        kept[t] = update, reset, new, again
        outputs[:, t + 1] = rounded(update * outputs[:, t] + (1.0 - update) * new)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        slopes, products = np.empty((2, batch, length, 3 * units))
        of_output = np.zeros((batch, units))
        for t in reversed(range(length)):
            update, reset, new, again = kept[t]
            of_output = of_output + gradient[:, t]
            of_new = of_output * (1.0 - update) * (1.0 - new**2)
            of_update = of_output * (outputs[:, t] - new) * update * (1.0 - update)
            of_reset = of_new * again * reset * (1.0 - reset)
            slopes[:, t] = np.concatenate([of_update, of_reset, of_new], axis=1)
            products[:, t] = np.concatenate([of_update, of_reset, of_new * reset], axis=1)
            of_output = of_output * update + products[:, t] @ recurrent.T
        both = ((x, slopes), (outputs[:, :-1], products))
        of_kernels = [np.tensordot(*pair, ([0, 1], [0, 1])) for pair in both]
        of_biases = np.stack([slopes.sum((0, 1)), products.sum((0, 1))])
        return [slopes @ kernel.T], [*of_kernels, of_biases]

    return outputs[:, 1:], backward


def _states(inputs: Array, recurrent: Array, rounded: Any) -> tuple[Array, Array, Array]:
    """States of an LSTM, step by step.

    Args:
        inputs: the inputs' part of what the gates are functions of, (batch, length, 4 units).
        recurrent: the recurrent kernel, (units, 4 units).

    Returns:
        The gates (length, 4, batch, units), then cells and outputs (batch, length + 1, units), of
        which the first ones are the initial zeros.
    """
    batch, length, _ = inputs.shape
    units = len(recurrent)
    gates = np.empty((length, 4, batch, units))
    cells, outputs = np.zeros((2, batch, length + 1, units))
    for t in range(length):
        now = rounded(inputs[:, t] + outputs[:, t] @ recurrent)
        before = now.reshape(batch, 4, units).swapaxes(0, 1)
        gates[t] = _sigmoid(before)
        gates[t, 2] = np.tanh(before[2])
        enter, keep, new, leave = gates[t] = rounded(gates[t])
        cells[:, t + 1] = rounded(keep * cells[:, t] + enter * new)
        outputs[:, t + 1] = rounded(leave * np.tanh(cells[:, t + 1]))
    return gates, cells, outputs


def _slopes(gates: Array, cells: Array, recurrent: Array, gradient: Array) -> Array:
    """The gradient with respect to what the gates are functions of.

    Args:
        gates: as :func:`_states` returns them.
        recurrent: the recurrent kernel, (units, 4 units).
        gradient: with respect to the outputs, (batch, length, units).

    Returns:
        (batch, length, 4 units).
    """
    batch, length, units = gradient.shape
    slopes = np.empty((batch, length, 4 * units))
    of_cell, of_output = np.zeros((2, batch, units))
    for t in reversed(range(length)):
        of_output = of_output + gradient[:, t]
        enter, keep, new, leave = gates[t]
        seen = np.tanh(cells[:, t + 1])
        of_cell += of_output * leave * (1.0 - seen**2)
        slopes[:, t] = np.concatenate(
            [
                of_cell * new * enter * (1.0 - enter),
                of_cell * cells[:, t] * keep * (1.0 - keep),
                of_cell * enter * (1.0 - new**2),
                of_output * seen * leave * (1.0 - leave),
            ],
            axis=1,
        )
        of_output = slopes[:, t] @ recurrent.T
        of_cell *= keep
    return slopes


def _sigmoid(x: Array) -> Array:
    """By way of tanh, which cannot overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))
