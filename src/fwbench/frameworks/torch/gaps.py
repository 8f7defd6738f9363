"""Operations that PyTorch does not offer at all, or not everywhere, by family."""

from __future__ import annotations

from fwbench.manifest import Gap
from fwbench.workloads.operations.decompositions import DECOMPOSITIONS

GAPS: tuple[Gap, ...] = (
    # Activations
    Gap(
        "torch's gradient of hardsigmoid has a constant of float32, whatever the dtype",
        "hard_sigmoid",
        direction="backward",
        dtype="float64",
    ),
    # Reductions
    *(
        Gap(
            f"torch multiplies so many factors of {dtype} in {dtype}",
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
)
