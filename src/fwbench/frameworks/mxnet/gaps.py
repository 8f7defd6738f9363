"""Operations that MXNet does not offer at all, or not everywhere, by family."""

from __future__ import annotations

from fwbench.terms.manifest import Gap
from fwbench.workloads import CLASSIFICATIONS, INFERENCES
from fwbench.workloads.operations.attention import ATTENTION
from fwbench.workloads.operations.convolution import CONVOLUTION
from fwbench.workloads.operations.linalg import DECOMPOSITIONS
from fwbench.workloads.operations.optimisers import OPTIMISERS
from fwbench.workloads.operations.recurrent import RECURRENT

_PRODUCTS = (
    *("dot", "gemm", "gemv", "outer", "gemm_nn", "gemm_tn", "gemm_nt", "batch_gemm", "tensordot"),
    *("linear", "norm", *(operation.name for operation in (*CONVOLUTION, *ATTENTION, *RECURRENT))),
)

#: How many terms float16 bears: those of a row until it is off by more than it may be, and all of a
#: mean until their sum is beyond what float16 has.
_IN_FLOAT16 = {
    **dict.fromkeys(("softmax", "log_softmax"), 1024),
    **dict.fromkeys(("cross_entropy", "cross_entropy_sum"), 128 * 1024),  # as many rows of those
    **dict.fromkeys(("binary_cross_entropy", "mse", "huber"), 16 * 1024),
}

#: MXNet says that nothing in such a graph requires a gradient.
_NO_GRADIENT = "mxnet hybridizes no block whose results have no gradient by its inputs"

#: Their graphs are made before the dtype is known.
_BY_SYMBOL = "mxnet's symbols know no dtype, and so this operator draws float32 there"

_NO_HALF = "mxnet has no float16 product on the CPU (FP16 gemm on cpu not implemented)"

GAPS: tuple[Gap, ...] = (
    # Activations
    *(
        Gap(f"mxnet computes {operation} in float32 in every dtype", operation, dtype="float64")
        for operation in ("gelu", "leaky_relu", "selu", "hard_sigmoid")
    ),
    # Elementwise arithmetic
    Gap("mxnet cannot read an array of bfloat16 back", "cast_bfloat16"),
    Gap("mxnet's around refuses float16", "round_half_even", dtype="float16"),
    *(
        Gap(
            "mxnet's gradient has constants of float32 in every dtype",
            operation,
            direction="backward",
            dtype="float64",
        )
        for operation in ("erf", "erfinv", "lgamma")
    ),
    # Reductions
    Gap(
        "mxnet multiplies long rows of float16 in float16",
        "prod",
        dtype="float16",
        device="cpu",
        terms_above=1024,
    ),
    # Products, convolutions, attention and recurrent layers
    *(
        Gap("mxnet has no float16 product on the CPU", operation, dtype="float16", device="cpu")
        for operation in _PRODUCTS
    ),
    # Vectors and matrices
    Gap("mxnet has no float8", "scaled_gemm"),
    *(
        Gap("mxnet has no linear algebra in float16", operation.name, dtype="float16")
        for operation in DECOMPOSITIONS
    ),
    # Normalisation
    Gap(
        "mxnet normalises by the batch only while it records a gradient",
        "batch_norm_training",
        direction="forward",
    ),
    *(
        Gap("mxnet takes the vectors of a float16 batch norm in float32", name, dtype="float16")
        for name in ("batch_norm_training", "batch_norm_inference")
    ),
    *(
        Gap(f"mxnet computes its {function} in float32 alone", name, dtype=dtype)
        for name, function in (("instance_norm", "InstanceNorm"), ("lrn", "LRN"))
        for dtype in ("float64", "float16")
    ),
    # Softmax and losses
    *(
        Gap("mxnet computes its CTCLoss in float32 alone", "ctc_loss", dtype=dtype)
        for dtype in ("float64", "float16")
    ),
    *(
        Gap(
            "mxnet adds up long rows of float16 in float16",
            operation,
            dtype="float16",
            device="cpu",
            terms_above=terms,
        )
        for operation, terms in _IN_FLOAT16.items()
    ),
    # Sorting and searching
    *(
        Gap("mxnet does not sort float16", operation, dtype="float16")
        for operation in ("sort", "argsort")
    ),
    Gap("mxnet hybridizes unique in its NumPy mode alone", "unique", execution="hybridize"),
    Gap("mxnet leaves searchsorted to NumPy", "searchsorted"),
    # Random numbers
    *(
        Gap(_NO_GRADIENT, f"random_{name}", execution="hybridize")
        for name in ("uniform", "normal", "bernoulli", "integers", "exponential", "shuffle")
    ),
    *(
        Gap(_BY_SYMBOL, f"random_{name}", execution="hybridize", dtype=dtype)
        for name in ("gamma", "poisson")
        for dtype in ("float64", "float16")
    ),
    # Optimisers
    *(
        Gap("mxnet's symbols overwrite no weights", operation.name, execution="hybridize")
        for operation in OPTIMISERS
    ),
    # Fourier transforms
    *(
        Gap("mxnet has no complex numbers; its contrib.fft is for GPUs alone", operation)
        for operation in ("fft", "rfft", "fft2")
    ),
    # Networks and exchanges
    Gap(
        "mxnet trains in bfloat16 after amp.init alone, which changes its operators for the "
        "whole process and cannot be undone",
        direction="train",
        dtype="bfloat16",
    ),
    Gap(
        "mxnet converts only hybridized networks to bfloat16 (amp.convert_hybrid_block)",
        execution="eager",
        dtype="bfloat16",
    ),
    Gap("mxnet's KVStore pushes and pulls whole arrays, and scatters none", "reduce_scatter"),
    Gap("mxnet's KVStore pushes and pulls whole arrays, and gathers none", "all_gather"),
    Gap("mxnet's KVStore.broadcast takes every key once, to begin with", "broadcast"),
    *(
        Gap(_NO_HALF, network.name, dtype="float16", device="cpu")
        for network in (*INFERENCES, *CLASSIFICATIONS)
    ),
    Gap(_NO_HALF, direction="train", dtype="float16", device="cpu"),
)
