"""What PyTorch's executions for GPUs cannot do."""

from __future__ import annotations

from fwbench.manifest import Gap
from fwbench.workloads.operations.optimisers import OPTIMISERS

_ON_CPU = {
    "reduce_overhead": "torch.compile's reduce-overhead launches CUDA graphs, and a CPU has none",
    "max_autotune": "torch.compile's max-autotune is for GPUs: on a CPU it has little to try "
    "(products of constant factors, or of batches), and fwbench leaves it out",
    "cuda_graph": "a CUDA graph is captured on a GPU",
}

#: Of which PyTorch's documentation says that the host waits for the device.
_WAITING = ("cholesky", "solve", "inverse", "svd", "svd_values", "eigh", "boolean_mask")
_OF_UNKNOWN_SIZE = ("unique",)

GAPS_OF_GRAPHS = (
    *(Gap(reason, execution=execution, device="cpu") for execution, reason in _ON_CPU.items()),
    *(
        Gap(
            "the calls before its capture would be steps that nothing verifies",
            operation.name,
            execution="cuda_graph",
            device="gpu",
        )
        for operation in OPTIMISERS
    ),
    *(
        Gap(
            f"{name} waits for the GPU, which cannot be captured",
            name,
            execution="cuda_graph",
            device="gpu",
        )
        for name in _WAITING
    ),
    *(
        Gap(
            f"the size of {name}'s result is not known before",
            name,
            execution="cuda_graph",
            device="gpu",
        )
        for name in _OF_UNKNOWN_SIZE
    ),
)
