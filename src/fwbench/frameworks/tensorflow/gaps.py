"""Operations that TensorFlow does not offer at all, or not everywhere, by family."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from fwbench.terms.manifest import Gap
from fwbench.workloads.operations.linalg import DECOMPOSITIONS

#: How many terms are added up or multiplied in the dtype itself without being off by too much.
_IN_DTYPE = (("prod", "float16", 1024), ("prod", "bfloat16", 256), ("cumsum", "bfloat16", 256))

_IN_XLA_ONLY = (("erfinv", "float16"), ("erfinv", "bfloat16"), ("lgamma", "bfloat16"))

_NO_KERNEL = "tensorflow has no kernel for it in {}"

#: It rotates until what is left is 1e-6 in every dtype.
_INACCURATE = "tensorflow's xla decomposes float64 to no more than seven digits"

_VECTORS = "tensorflow's fused batch norm takes vectors of float32 alone"


def _missing() -> Iterator[Gap]:
    """A gap where the runtime of ``litert`` is not installed; nothing is imported."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        yield Gap(
            "litert needs ai-edge-litert in tensorflow's environment; install it there "
            '(pip install "fwbench[litert]")',
            execution="litert",
        )


GAPS: tuple[Gap, ...] = (
    # Activations
    *(
        Gap("tensorflow's gelu has a constant of float32 in every dtype", name, dtype="float64")
        for name in ("gelu", "gelu_tanh")
    ),
    # Elementwise arithmetic
    *(
        Gap(
            f"tensorflow has a {dtype} kernel of {operation} on the CPU in xla only",
            operation,
            execution=execution,
            dtype=dtype,
            device="cpu",
        )
        for operation, dtype in _IN_XLA_ONLY
        for execution in ("eager", "graph")
    ),
    Gap("tensorflow.experimental.numpy has no bfloat16", "hypot", dtype="bfloat16"),
    # Reductions
    *(
        Gap(
            f"tensorflow accumulates long sums and products of {dtype} in {dtype}",
            operation,
            execution,
            dtype=dtype,
            device="cpu",
            terms_above=terms,
        )
        for operation, dtype, terms in _IN_DTYPE
        for execution in ("eager", "graph")
    ),
    # Vectors and matrices
    # MatMul and BatchMatMulV3 refuse it (tensorflow/core/ops/math_ops.cc).
    Gap("tensorflow stores float8, and multiplies nothing in it", "scaled_gemm"),
    *(
        Gap("tensorflow has no linear algebra in bfloat16", operation.name, dtype="bfloat16")
        for operation in DECOMPOSITIONS
        if operation.name != "triangular_solve"
    ),
    *(
        Gap(_NO_KERNEL.format(dtype), operation, execution, dtype=dtype)
        for operation, dtype in (
            *((name, "float16") for name in ("cholesky", "solve", "triangular_solve")),
            *((name, "float16") for name in ("svd_values", "svd", "eigh")),
            ("triangular_solve", "bfloat16"),
        )
        for execution in ("eager", "graph")
    ),
    # The system that the gradient solves.
    *(
        Gap(_NO_KERNEL.format("float16"), operation, execution, "backward", "float16")
        for operation in ("qr", "lq")
        for execution in ("eager", "graph")
    ),
    *(
        Gap("tensorflow's xla finds no singular values in float16", name, "xla", dtype="float16")
        for name in ("svd_values", "svd")
    ),
    Gap("tensorflow's xla is off by 3 % in float16", "eigh", "xla", dtype="float16"),
    Gap(_NO_KERNEL.format("float16"), "slogdet", dtype="float16"),
    Gap("tensorflow's xla has no determinants", "slogdet", "xla"),
    *(Gap(_INACCURATE, operation, "xla", dtype="float64") for operation in ("svd", "eigh")),
    Gap(_INACCURATE, "svd_values", "xla", "backward", "float64"),
    # Convolution
    # In float32 and bfloat16 oneDNN has them; without it they would be missing there, too.
    *(
        Gap(
            f"tensorflow has no {dtype} gradient of a {kind} convolution on the CPU",
            f"conv2d_{kind}",
            execution,
            "backward",
            dtype,
            "cpu",
        )
        for kind in ("dilated", "grouped")
        for execution in ("eager", "graph")
        for dtype in ("float64", "float16")
    ),
    # Normalisation
    *(Gap(_VECTORS, "batch_norm_training", dtype=dtype) for dtype in ("float16", "bfloat16")),
    Gap("tensorflow has no fused batch norm in float64", "batch_norm_training", dtype="float64"),
    Gap("tensorflow's LRN has no float64", "lrn", dtype="float64"),
    Gap("tensorflow has no bfloat16 LRN on the CPU", "lrn", dtype="bfloat16", device="cpu"),
    Gap("XLA multiplies float16 by float32 in its LRN, and fails", "lrn", "xla", dtype="float16"),
    # Softmax and losses
    Gap("tensorflow's CTC loss has numbers of float32 in every dtype", "ctc_loss", dtype="float64"),
    *(
        Gap(
            "tensorflow adds up a mean of float16 in float16, which has nothing beyond 65504",
            operation,
            execution,
            dtype="float16",
            device="cpu",
            terms_above=16 * 1024,
        )
        for operation in ("binary_cross_entropy", "mse", "huber")
        for execution in ("eager", "graph")
    ),
    # Indexing
    Gap("XLA has no gradient of boolean_mask", "boolean_mask", "xla", "backward"),
    # Random numbers
    *(
        gap
        for name in ("gamma", "poisson")
        for gap in (
            Gap(f"tensorflow has no {name} numbers in XLA", f"random_{name}", execution="xla"),
            Gap(f"tensorflow has no bfloat16 {name} numbers", f"random_{name}", dtype="bfloat16"),
        )
    ),
    # Optimisers
    *(
        Gap(
            "Keras computes Adam's constants in bfloat16, in which this beta_2 is 1",
            name,
            dtype="bfloat16",
        )
        for name in ("adam", "adamw")
    ),
    # Images
    Gap("tensorflow interpolates in float32", "resize_bilinear", dtype="float64"),
    *(
        Gap("tensorflow interpolates in float32", "resize_bilinear", None, "backward", dtype)
        for dtype in ("float16", "bfloat16")
    ),
    Gap("XLA has no gradient of resize_nearest", "resize_nearest", "xla", "backward"),
    # Networks
    *_missing(),
)
