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


#: Both biases are one array.
_BIASES = Layout(
    place=lambda arrays: [*arrays[:3], np.stack(arrays[3:])],
    restore=lambda arrays: [*arrays[:3], *arrays[3]],
)

OPERATIONS: Table = {
    "rnn": _layer("SimpleRNN"),
    "lstm": _layer("LSTM"),
    "gru": Laid(_layer("GRU"), _BIASES),
}

GAPS: tuple[Gap, ...] = ()
