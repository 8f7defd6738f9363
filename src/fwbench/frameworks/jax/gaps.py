"""Operations that JAX does not offer at all, or not everywhere, by family."""

from __future__ import annotations

from fwbench.terms.manifest import Gap
from fwbench.workloads.operations.linalg import DECOMPOSITIONS

GAPS: tuple[Gap, ...] = (
    # Vectors and matrices
    *(
        Gap(f"jax has no linear algebra in {dtype}", operation.name, dtype=dtype)
        for operation in DECOMPOSITIONS
        for dtype in ("float16", "bfloat16")
    ),
    # Softmax and losses
    Gap("jax has no CTC loss; Optax has one", "ctc_loss"),
    # Indexing
    Gap("jit has no shapes that depend on data", "boolean_mask", execution="jit"),
    # Sorting and searching
    Gap("jit has no shapes that depend on data", "unique", execution="jit"),
    # Networks
    Gap(
        "jax has no function of its own that scales a loss, as training in float16 needs",
        direction="train",
        dtype="float16",
    ),
)
