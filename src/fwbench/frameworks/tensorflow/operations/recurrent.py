"""TensorFlow: recurrent layers, which are Keras's, with the weights that every call is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation

#: Weights that a layer is built with, and no call has: Keras draws no orthogonal ones in bfloat16.
_UNUSED = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}


def _layer(name: str) -> Implementation:
    """An implementation by ``tf.keras.layers.<name>``, built by the first call, outside of graphs.

    Only then the dtype is known, and a graph must not make variables whenever it is traced.
    """

    def implementation(tf: Any, units: int) -> Callable[..., Any]:
        layers: list[Any] = []

        def call(x: Any, *weights: Any) -> Any:
            if not layers:
                with tf.init_scope():
                    made = getattr(tf.keras.layers, name)(
                        units, return_sequences=True, dtype=x.dtype.name, **_UNUSED
                    )
                    made.build(x.shape)
                    layers.append(made)
            others = layers[0].non_trainable_variables
            return layers[0].stateless_call(weights, others, x)[0]

        return call

    return implementation


def _step(tf: Any, sums: Any, within: Any, state: Any, cell: Any) -> tuple[Any, Any]:
    """State and cell after a step of an LSTM; what they were where a sequence has ended."""
    entry, keep, new, exit_ = tf.split(sums, 4, axis=-1)
    after = tf.sigmoid(keep) * cell + tf.sigmoid(entry) * tf.tanh(new)
    return (
        tf.where(within, tf.sigmoid(exit_) * tf.tanh(after), state),
        tf.where(within, after, cell),
    )


def _while_loop(tf: Any, sums: Any, u: Any, lengths: Any, zeros: Any) -> tuple[Any, Any]:
    """States of all times, and the last one; as many steps as the longest sequence has."""
    steps = sums.shape[0]
    times = tf.TensorArray(sums.dtype, steps).unstack(sums)
    states = tf.TensorArray(sums.dtype, steps, element_shape=zeros.shape)

    def body(now: Any, state: Any, cell: Any, states: Any) -> tuple[Any, ...]:
        within = (now < lengths)[:, None]
        state, cell = _step(tf, times.read(now) + state @ u, within, state, cell)
        states = states.write(now, tf.where(within, state, tf.zeros_like(state)))
        return now + 1, state, cell, states

    longest = tf.reduce_max(lengths)
    _, state, _, states = tf.while_loop(
        lambda now, *_: now < longest,
        body,
        (tf.constant(0), zeros, zeros, states),
        maximum_iterations=steps,  # XLA's gradient needs to know
    )
    return states.stack(), state


def _python_loop(tf: Any, sums: Any, u: Any, lengths: Any, zeros: Any) -> tuple[Any, Any]:
    """The same, by a loop of Python's, which a graph unrolls."""
    state = cell = zeros
    states = []
    for now, of_now in enumerate(tf.unstack(sums)):
        within = (now < lengths)[:, None]
        state, cell = _step(tf, of_now + state @ u, within, state, cell)
        states.append(tf.where(within, state, zeros))
    return tf.stack(states), state


_LOOPS = {"native": _while_loop, "python": _python_loop}


def _dynamic_rnn(tf: Any, units: int, loop: str) -> Callable[..., Any]:
    """An LSTM over sequences of different lengths, with time before the batch within the loop."""

    def call(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> tuple[Any, Any]:
        sums = tf.tensordot(tf.transpose(x, (1, 0, 2)), w, 1) + b
        zeros = tf.zeros((x.shape[0], units), x.dtype)
        states, state = _LOOPS[loop](tf, sums, u, tf.cast(lengths, tf.int32), zeros)
        return tf.transpose(states, (1, 0, 2)), state

    return call


#: Both biases are one array.
_BIASES = Layout(
    place=lambda arrays: [*arrays[:3], np.stack(arrays[3:])],
    restore=lambda arrays: [*arrays[:3], *arrays[3]],
)

OPERATIONS: Table = {
    "rnn": _layer("SimpleRNN"),
    "lstm": _layer("LSTM"),
    "gru": Laid(_layer("GRU"), _BIASES),
    "dynamic_rnn": lambda tf, units, steps, loop: _dynamic_rnn(tf, units, loop),
}

GAPS: tuple[Gap, ...] = ()
