"""WHAT is measured: operations by family, training loops. Nothing here names a framework."""

from __future__ import annotations

from fwbench.workloads.models.networks import cifar_cnn, lenet, mlp, sentiment_lstm
from fwbench.workloads.operation import Implementation, Operation
from fwbench.workloads.operations.activations import relu, sigmoid, softplus, softsign, tanh
from fwbench.workloads.operations.creation import from_list, from_numpy
from fwbench.workloads.operations.linalg import dot, flatten, gemm, l2_normalize
from fwbench.workloads.operations.overhead import noop
from fwbench.workloads.training import Training
from fwbench.workloads.workload import Cost

#: The fundamental operations: Benchmark A of the TensorFlow / MXNet report, and ``noop``.
OPERATIONS: tuple[Operation, ...] = (
    from_numpy,
    from_list,
    sigmoid,
    relu,
    tanh,
    softplus,
    softsign,
    dot,
    gemm,
    flatten,
    l2_normalize,
    noop,
)

#: The training loops: a small one, Benchmarks B, C and D, and the sentiment experiment.
TRAININGS: tuple[Training, ...] = (mlp, lenet, cifar_cnn, sentiment_lstm)

__all__ = [
    "OPERATIONS",
    "TRAININGS",
    "Cost",
    "Implementation",
    "Operation",
    "Training",
    "cifar_cnn",
    "dot",
    "flatten",
    "from_list",
    "from_numpy",
    "gemm",
    "l2_normalize",
    "lenet",
    "mlp",
    "noop",
    "relu",
    "sentiment_lstm",
    "sigmoid",
    "softplus",
    "softsign",
    "tanh",
]
