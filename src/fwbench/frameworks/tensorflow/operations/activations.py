"""TensorFlow: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "math.sigmoid",
    "relu": "nn.relu",
    "tanh": "math.tanh",
    "softplus": "math.softplus",
    "softsign": "nn.softsign",
    "gelu": "nn.gelu",
    "gelu_tanh": Call("nn.gelu", approximate=True),
    "elu": "nn.elu",
    "selu": "nn.selu",
    "leaky_relu": Call("nn.leaky_relu", alpha=0.25),
    "silu": "nn.silu",
    "hard_sigmoid": lambda tf: lambda x: tf.nn.relu6(x + 3.0) / 6.0,
    "log_sigmoid": "math.log_sigmoid",
}

GAPS: tuple[Gap, ...] = tuple(
    Gap(
        "tensorflow's gelu has a constant of float32, whatever the dtype",
        operation,
        dtype="float64",
    )
    for operation in ("gelu", "gelu_tanh")
)
