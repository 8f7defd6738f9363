"""PyTorch: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "sigmoid",
    "relu": "relu",
    "tanh": "tanh",
    "softplus": "nn.functional.softplus",
    "softsign": "nn.functional.softsign",
    "gelu": "nn.functional.gelu",
    "gelu_tanh": Call("nn.functional.gelu", approximate="tanh"),
    "elu": "nn.functional.elu",
    "selu": "nn.functional.selu",
    "leaky_relu": Call("nn.functional.leaky_relu", negative_slope=0.25),
    "silu": "nn.functional.silu",
    "hard_sigmoid": "nn.functional.hardsigmoid",
    "log_sigmoid": "nn.functional.logsigmoid",
}

GAPS: tuple[Gap, ...] = (
    Gap(
        "torch's gradient of hardsigmoid has a constant of float32, whatever the dtype",
        "hard_sigmoid",
        direction="backward",
        dtype="float64",
    ),
)
