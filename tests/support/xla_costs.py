"""What XLA counts of an operation, and where that is something else than what it declares, and why.

XLA counts what it compiled (``Compiled.cost_analysis()``): the steps of an algorithm where fwbench
counts the arithmetic of the textbook, and what is written between kernels besides operands and
results.
"""

from __future__ import annotations

#: A program for an environment with JAX: prints flops and bytes by operation, in float32.
COUNT = """
import json
import warnings

import jax

from fwbench.cases.bind import bind
from fwbench.frameworks.registry import load
from fwbench.grid import Cell
from fwbench.workloads import OPERATIONS

warnings.simplefilter("ignore")  # of int64 indices, which JAX makes int32
framework = load("jax", 1)
manifest = framework.manifest("a CPU")
counted = {}
for operation in OPERATIONS:
    if manifest.gap(operation.name, "jit", "forward", "float32", "cpu") is None:
        cell = Cell(operation, "jax", "cpu", "eager", "forward", "float32", operation.smallest)
        run = bind(cell, framework).run
        cost = jax.jit(run.func).lower(*run.args).compile().cost_analysis()
        flops = cost.get("flops", 0) + cost.get("transcendentals", 0)
        counted[operation.name] = flops, cost.get("bytes accessed", 0)
print(json.dumps(counted))
"""

_BOOLEANS = "a boolean is one byte, and its cost is declared at the width of the case's dtype"

#: Operations that XLA counts other FLOPs of than half to twice what they declare, by the reason.
OTHER_FLOPS = {
    "a polynomial is counted term by term, not as one function": (
        *("erfinv", "gelu", "lgamma", "softplus"),
    ),
    "the special cases of every element are counted: signs, zeros, what is not finite": (
        *("binary_cross_entropy", "hypot", "mod"),
    ),
    "a window or a tree is counted, which takes more additions or comparisons than one pass": (
        *("argmax", "argmin", "cumsum", "searchsorted"),
    ),
    "the whole square is computed, half of which is masked": ("attention_causal",),
    "the transform of real numbers, and of two axes, is counted as complex ones of all numbers": (
        *("fft2", "rfft"),
    ),
    "all numbers are weighted, by products with matrices": ("resize_bilinear",),
    "the generator is counted (threefry), of which a number costs dozens of operations": (
        *("dropout", "random_bernoulli", "random_categorical", "random_exponential"),
        *("random_gamma", "random_integers", "random_normal", "random_poisson", "random_uniform"),
    ),
    "the work is a call of LAPACK or of XLA's runtime, which is not counted": (
        *("eigh", "inverse", "lq", "qr", "slogdet", "solve", "svd", "svd_values", "top_k"),
        "triangular_solve",
    ),
}

#: Operations of which XLA counts fewer bytes than they declare, by the reason.
FEWER_BYTES = {
    _BOOLEANS: ("any", "equal", "greater", "isnan", "logical_and", "logical_not", "where"),
    "the narrower result is counted at its own width": ("cast_bfloat16", "cast_float16"),
    "the work is a call of XLA's runtime, which is not counted": ("top_k",),
}

#: Products without padding, and arithmetic: nothing can be counted in two ways.
EXACT = (
    *("add", "batch_gemm", "conv2d_1x1", "conv2d_5x20_s2", "divide", "einsum", "gemm", "gemm_nn"),
    *("gemm_nt", "gemm_tn", "gemv", "multiply", "multiply_add", "outer", "square", "subtract"),
    *("adam", "adamw", "linear", "mse", "nesterov", "relu", "rmsprop", "sgd", "tensordot"),
)
