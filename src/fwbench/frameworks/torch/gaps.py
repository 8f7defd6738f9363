"""Operations that PyTorch does not offer at all, or not everywhere, by family."""

from __future__ import annotations

from fwbench.terms.manifest import Gap
from fwbench.workloads.operations.linalg import DECOMPOSITIONS
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

GAPS: tuple[Gap, ...] = (
    # Activations
    Gap(
        "torch's gradient of hardsigmoid has a constant of float32 in every dtype",
        "hard_sigmoid",
        direction="backward",
        dtype="float64",
    ),
    # Reductions
    *(
        Gap(
            f"torch multiplies long rows of {dtype} in {dtype}",
            "prod",
            dtype=dtype,
            device="cpu",
            terms_above=factors,
        )
        for dtype, factors in (("float16", 1024), ("bfloat16", 256))
    ),
    # Vectors and matrices
    *(
        Gap(f"torch has no linear algebra in {dtype}", operation.name, dtype=dtype)
        for operation in DECOMPOSITIONS
        for dtype in ("float16", "bfloat16")
    ),
    # Normalisation
    *(
        Gap(
            f"torch has no {dtype} pooling over channels on the CPU",
            "lrn",
            dtype=dtype,
            device="cpu",
        )
        for dtype in ("float16", "bfloat16")
    ),
    Gap(
        "torch adds up the gradients of layer_norm's vectors in bfloat16",
        "layer_norm",
        direction="backward",
        dtype="bfloat16",
        device="cpu",
        terms_above=64,
    ),
    # Softmax and losses
    *(
        Gap(f"torch has no {dtype} CTC loss", "ctc_loss", dtype=dtype)
        for dtype in ("float16", "bfloat16")
    ),
    # Random numbers
    *(
        Gap(
            f"torch has no {dtype} gamma numbers on the CPU",
            "random_gamma",
            dtype=dtype,
            device="cpu",
        )
        for dtype in ("float16", "bfloat16")
    ),
    # Optimisers
    Gap("torch has no FTRL", "ftrl"),
    # Executions for GPUs
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
    # Networks
    Gap(
        "torch has no bfloat16 LSTM on most CPUs",
        "sentiment_lstm",
        dtype="bfloat16",
        device="cpu",
    ),
    *(
        Gap(
            "torch trains no LSTM in float16 on most CPUs (could not create a primitive "
            "descriptor for the LSTM forward propagation primitive)",
            name,
            direction="train",
            dtype="float16",
            device="cpu",
        )
        for name in ("sentiment_lstm", "word_lm", "word_lm_step", "word_lm_sampled_step")
    ),
)
