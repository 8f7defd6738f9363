"""Operations that NumPy does not offer at all, or not everywhere, by family."""

from __future__ import annotations

from fwbench.terms.manifest import Gap
from fwbench.workloads.operations.linalg import DECOMPOSITIONS

GAPS: tuple[Gap, ...] = (
    # Activations
    Gap("numpy has no error function", "gelu"),
    # Elementwise arithmetic
    Gap("numpy has no error function", "erf"),
    Gap("numpy has no inverse error function", "erfinv"),
    Gap("numpy has no gamma function", "lgamma"),
    Gap("numpy has no bfloat16", "cast_bfloat16"),
    # Vectors and matrices
    Gap("numpy has no float8", "scaled_gemm"),
    # SciPy has it.
    Gap("numpy solves systems with full matrices only", "triangular_solve"),
    *(
        Gap("numpy's LAPACK has no float16", operation.name, dtype="float16")
        for operation in DECOMPOSITIONS
    ),
    # Attention
    *(Gap("numpy has no attention", name) for name in ("attention", "attention_causal")),
    # Recurrent layers
    *(Gap("numpy has no recurrent layers", name) for name in ("rnn", "lstm", "gru")),
    # Random numbers
    Gap("numpy has no dropout", "dropout"),
    *(
        Gap("numpy draws no float16 numbers", f"random_{name}", dtype="float16")
        for name in ("uniform", "normal", "bernoulli", "gamma", "exponential")
    ),
    # Optimisers
    *(
        Gap("numpy has no optimisers", name)
        for name in ("sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "ftrl")
    ),
    # Images
    Gap("numpy has no interpolation of images", "resize_bilinear"),
)
