"""WHAT is measured: operations by family, training loops. Nothing here names a framework.

Every operation and every training loop can be imported from here by its name::

    from fwbench.workloads import gemm, mlp
"""

from __future__ import annotations

from typing import Any

from fwbench.workloads.models.networks import TRAININGS
from fwbench.workloads.operation import Implementation, Operation
from fwbench.workloads.operations.activations import ACTIVATIONS
from fwbench.workloads.operations.creation import CREATIONS
from fwbench.workloads.operations.linalg import LINALG
from fwbench.workloads.operations.overhead import OVERHEAD
from fwbench.workloads.training import Training
from fwbench.workloads.workload import Cost, Workload

#: The fundamental operations, family by family.
OPERATIONS: tuple[Operation, ...] = (*CREATIONS, *ACTIVATIONS, *LINALG, *OVERHEAD)

_BY_NAME: dict[str, Workload] = {workload.name: workload for workload in (*OPERATIONS, *TRAININGS)}

__all__ = [
    "ACTIVATIONS",
    "CREATIONS",
    "LINALG",
    "OPERATIONS",
    "OVERHEAD",
    "TRAININGS",
    "Cost",
    "Implementation",
    "Operation",
    "Training",
    "Workload",
]


def __getattr__(name: str) -> Any:
    """A workload by its name.

    Raises:
        AttributeError: no workload has that name.
    """
    if name not in _BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _BY_NAME[name]


def __dir__() -> list[str]:
    """The public names, and those of all workloads."""
    return sorted({*__all__, *_BY_NAME})
