"""WHAT is measured: operations by family, training loops. Nothing here names a framework.

Every operation and every training loop can be imported from here by its name::

    from fwbench.workloads import gemm, mlp
"""

from typing import Any

from fwbench.workloads.collectives import COLLECTIVES, SERVED
from fwbench.workloads.imports import STARTUP
from fwbench.workloads.models.networks import TEXT_TRAININGS, TRAININGS
from fwbench.workloads.models.passes import CLASSIFICATIONS, FORWARD_BACKWARDS, INFERENCES
from fwbench.workloads.models.steps import MODELS, SAMPLED
from fwbench.workloads.operation import Implementation, Operation
from fwbench.workloads.operations.activations import ACTIVATIONS
from fwbench.workloads.operations.attention import ATTENTION
from fwbench.workloads.operations.convolution import CONVOLUTION
from fwbench.workloads.operations.creation import COPIES, CREATIONS, OVERHEAD
from fwbench.workloads.operations.elementwise import ELEMENTWISE
from fwbench.workloads.operations.fft import FFT
from fwbench.workloads.operations.image import IMAGE
from fwbench.workloads.operations.indexing import INDEXING
from fwbench.workloads.operations.linalg import DECOMPOSITIONS, LINALG
from fwbench.workloads.operations.losses import LOSSES
from fwbench.workloads.operations.normalisation import NORMALISATION
from fwbench.workloads.operations.optimisers import OPTIMISERS
from fwbench.workloads.operations.pooling import POOLING
from fwbench.workloads.operations.random import RANDOM
from fwbench.workloads.operations.recurrent import RECURRENT
from fwbench.workloads.operations.reductions import REDUCTIONS
from fwbench.workloads.operations.shape import SHAPE
from fwbench.workloads.operations.sorting import SORTING
from fwbench.workloads.photos import PHOTOS
from fwbench.workloads.training import Step, Training
from fwbench.workloads.workload import Cost, Workload

#: The fundamental operations by family, in the order to show them.
FAMILIES: dict[str, tuple[Operation, ...]] = {
    operations[0].family: operations
    for operations in (
        *(CREATIONS, COPIES, ACTIVATIONS, ELEMENTWISE, REDUCTIONS, LINALG, CONVOLUTION, POOLING),
        *(NORMALISATION, LOSSES, ATTENTION, RECURRENT, INDEXING, SORTING, SHAPE, RANDOM),
        *(OPTIMISERS, FFT, IMAGE, OVERHEAD),
    )
}

OPERATIONS: tuple[Operation, ...] = tuple(
    operation for family in FAMILIES.values() for operation in family
)

#: All training loops.
LOOPS: tuple[Training, ...] = (*TRAININGS, *TEXT_TRAININGS)

#: A step of each loop that has one of its own; others are among :data:`MODELS`, in any size.
STEPS: tuple[Step, ...] = tuple(training.step for training in TRAININGS)

#: The checkpoints of each loop, saved and restored.
CHECKPOINTS = tuple(checkpoint for loop in LOOPS for checkpoint in loop.checkpoints)

#: Everything that can be imported from here by its name. Loaders belong to their training loops.
WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        *(*OPERATIONS, *LOOPS, *STEPS, *MODELS, *SAMPLED, *INFERENCES, *CLASSIFICATIONS),
        *(*CHECKPOINTS, *FORWARD_BACKWARDS, *COLLECTIVES, *SERVED, *PHOTOS, *STARTUP),
    )
}

__all__ = [
    "ACTIVATIONS", "ATTENTION", "CHECKPOINTS", "CLASSIFICATIONS", "COLLECTIVES", "CONVOLUTION",
    "COPIES", "CREATIONS", "DECOMPOSITIONS", "ELEMENTWISE", "FAMILIES", "FFT", "FORWARD_BACKWARDS",
    "IMAGE", "INDEXING", "INFERENCES", "LINALG", "LOOPS", "LOSSES", "MODELS", "NORMALISATION",
    "OPERATIONS", "OPTIMISERS", "OVERHEAD", "PHOTOS", "POOLING", "RANDOM", "RECURRENT",
    "REDUCTIONS", "SAMPLED", "SERVED", "SHAPE", "SORTING", "STARTUP", "STEPS", "TRAININGS",
    "WORKLOADS", "Cost", "Implementation", "Operation", "Training", "Workload",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A workload by its name; an AttributeError if there is none."""
    if name not in WORKLOADS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return WORKLOADS[name]


def __dir__() -> list[str]:
    """The public names, and those of all workloads."""
    return sorted({*__all__, *WORKLOADS})
