"""WHAT is measured: operations by family. Nothing here names a framework."""

from __future__ import annotations

from fwbench.workloads.activations import relu, sigmoid, softplus, softsign, tanh
from fwbench.workloads.creation import from_list, from_numpy
from fwbench.workloads.linalg import dot, flatten, gemm, l2_normalize
from fwbench.workloads.operation import Cost, Implementation, Operation
from fwbench.workloads.overhead import noop

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

__all__ = [
    "OPERATIONS",
    "Cost",
    "Implementation",
    "Operation",
    "dot",
    "flatten",
    "from_list",
    "from_numpy",
    "gemm",
    "l2_normalize",
    "noop",
    "relu",
    "sigmoid",
    "softplus",
    "softsign",
    "tanh",
]
