"""ONNX Runtime: activations."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sigmoid": "Sigmoid",
    "relu": "Relu",
    "tanh": "Tanh",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "gelu": "Gelu",
    "gelu_tanh": Call("Gelu", approximate="tanh"),
    "elu": "Elu",
    "selu": "Selu",
    "leaky_relu": Call("LeakyRelu", alpha=0.25),
    "silu": lambda op: lambda x: op.Mul(x, op.Sigmoid(x)),
    "hard_sigmoid": Call("HardSigmoid", alpha=1 / 6, beta=0.5),
    "log_sigmoid": lambda op: lambda x: op.Neg(op.Softplus(op.Neg(x))),
}


GAPS: tuple[Gap, ...] = ()
