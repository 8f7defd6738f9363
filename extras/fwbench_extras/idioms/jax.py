"""Other public ways of JAX to compute operations, and why they are not called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg  # jax has it once it is imported
from jax import lax

from fwbench.frameworks.jax import kernels
from fwbench.frameworks.jax.operations import OPERATIONS, POSITIONS_FIRST
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    NEIGHBOURS,
)
from fwbench_extras.idioms.table import Idiom, Idioms, beside, by

# Reductions, vectors and matrices


def in_blocks(reduction: Callable[..., Any], x: Any) -> Any:
    """Rows reduced in two steps: of blocks of 16 columns element by element, and of the rest."""
    return reduction(reduction(x.reshape(len(x), -1, 16), axis=1), axis=1)


def blocks(reduction: Callable[..., Any]) -> Table:
    return {"blocks of 16": by(partial(in_blocks, reduction))}


def log_of_sums(x: Any) -> Any:
    peaks = jnp.max(x, 1, keepdims=True)
    return (jnp.log(jnp.sum(jnp.exp(x - peaks), 1, keepdims=True)) + peaks)[:, 0]


def squares_and_mean(x: Any) -> Any:
    return jnp.sqrt(jnp.mean(jnp.square(x), 1) - jnp.square(jnp.mean(x, 1)))


def deviations(x: Any) -> Any:
    return jnp.sqrt(jnp.mean(jnp.square(x - jnp.mean(x, 1, keepdims=True)), 1))


# Convolution and pooling


def depthwise_of_slices(x: Any, w: Any) -> Any:
    """A depthwise convolution by 3 x 3 that keeps the size, as a sum of products."""
    around = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    parts = [around[:, i:, j:][:, : x.shape[1], : x.shape[2]] for i in range(3) for j in range(3)]
    return sum(part * v for part, v in zip(parts, w.reshape(9, -1), strict=True))


def slices(x: Any, extent: int) -> list[Any]:
    """The images that each position of square windows sees, which move by two."""
    rows, columns = ((size - extent) // 2 * 2 + 1 for size in x.shape[1:3])
    places = [(i, j) for i in range(extent) for j in range(extent)]
    return [x[:, i : i + rows : 2, j : j + columns : 2] for i, j in places]


# Normalisation


def softmax_by_exp(x: Any) -> Any:
    y = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    return y / jnp.sum(y, -1, keepdims=True)


def by_deviations(*axes: int, epsilon: float = EPSILON) -> Any:
    """The same by ``jnp.var``, which takes the mean off first."""

    def norm(x: Any, gamma: Any, beta: Any) -> Any:
        mean, variance = jnp.mean(x, axes, keepdims=True), jnp.var(x, axes, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + epsilon) * gamma + beta

    return norm


def lrn_of_slices(x: Any) -> Any:
    around = jnp.pad(jnp.square(x), ((0, 0),) * 3 + ((NEIGHBOURS // 2,) * 2,))
    total = sum(around[..., i : i + x.shape[-1]] for i in range(NEIGHBOURS))
    return x / (BIAS + ALPHA * total) ** BETA


# Losses


def losses_by_log_softmax(x: Any, labels: Any) -> Any:
    return -kernels.pick(jax.nn.log_softmax(x), labels)


def binary_cross_entropy_of_optax(x: Any, answers: Any) -> Any:
    return jnp.mean(-answers * jax.nn.log_sigmoid(x) - (1 - answers) * jax.nn.log_sigmoid(-x))


# Indexing and sorting


def sorted_and_compared(x: Any) -> Any:
    y = jnp.sort(x)
    return y[jnp.append(True, y[1:] != y[:-1])]


def largest_by_argsort(x: Any) -> Any:
    order = jnp.argsort(x, 1, descending=True)[:, :5]
    return jnp.take_along_axis(x, order, 1), order


#: Other ways than the one of the table, by the operation.
_OTHERS: dict[str, Table] = {
    # Activations
    "relu": {"maximum": by(lambda x: jnp.maximum(x, 0))},
    "gelu": {"erf": by(lambda x: 0.5 * x * (1 + lax.erf(x * 0.5**0.5)))},
    "softplus": {"log1p": by(lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))))},
    "log_sigmoid": {"log1p": by(lambda x: jnp.minimum(x, 0) - jnp.log1p(jnp.exp(-jnp.abs(x))))},
    # Elementwise arithmetic
    "hypot": {"sqrt": by(lambda x, y: jnp.sqrt(x * x + y * y))},
    "mod": {"floor": by(lambda x, y: x - jnp.floor(x / y) * y)},
    # Reductions
    "sum": {
        "columns first": by(lambda x: jnp.sum(jnp.sum(x, 0))),
        "vdot": by(lambda x: jnp.vdot(x, jnp.ones_like(x))),
    },
    "sum_columns": {"ones @ x": by(lambda x: jnp.ones(len(x), x.dtype) @ x)},
    "sum_rows": {"x @ ones": by(lambda x: x @ jnp.ones(x.shape[1], x.dtype)), **blocks(jnp.sum)},
    "mean": {
        "x @ ones": by(lambda x: x @ jnp.full(x.shape[1], 1 / x.shape[1], x.dtype)),
        **blocks(jnp.mean),
    },
    "variance": {
        "squares": by(lambda x: jnp.mean(jnp.square(x), 1) - jnp.square(jnp.mean(x, 1))),
        "deviations": by(lambda x: jnp.mean(jnp.square(x - jnp.mean(x, 1, keepdims=True)), 1)),
    },
    "std": {"squares": by(squares_and_mean), "deviations": by(deviations)},
    "max": {"top_k": by(lambda x: lax.top_k(x, 1)[0][:, 0]), **blocks(jnp.max)},
    "min": {"top_k": by(lambda x: -lax.top_k(-x, 1)[0][:, 0]), **blocks(jnp.min)},
    "prod": blocks(jnp.prod),
    "any": {"max": Call("numpy.max", axis=1), **blocks(jnp.any)},
    "logsumexp": {"log(sum(exp))": by(log_of_sums)},
    "argmax": {"top_k": by(lambda x: lax.top_k(x, 1)[1][:, 0])},
    "argmin": {"top_k": by(lambda x: lax.top_k(-x, 1)[1][:, 0])},
    "norm": {"vdot": by(lambda x: jnp.sqrt(jnp.vdot(x, x)))},
    "cumsum": {
        "lax.cumsum": Call("lax.cumsum", axis=1),
        "associative_scan": by(lambda x: lax.associative_scan(jnp.add, x, axis=1)),
    },
    # Vectors and matrices
    "dot": {"vdot": "numpy.vdot", "sum(x * y)": by(lambda x, y: jnp.sum(x * y))},
    "outer": {"x * y": by(lambda x, y: x[:, None] * y)},
    "cholesky": {"scipy": Call("scipy.linalg.cholesky", lower=True)},
    # Convolution
    "depthwise_conv2d": {"slices": lambda jax, window: depthwise_of_slices},
    # Pooling
    "max_pool2d": {"slices": by(lambda x: reduce(jnp.maximum, slices(x, 2)))},
    "max_pool2d_3x3_s2": {"slices": by(lambda x: reduce(jnp.maximum, slices(x, 3)))},
    "avg_pool2d": {"slices": by(lambda x: sum(slices(x, 2)) / 4)},
    "max_pool1d": {"slices": by(lambda x: jnp.maximum(x[:, ::2], x[:, 1::2]))},
    # Normalisation
    "batch_norm_training": {"var": by(by_deviations(0, 1, 2, epsilon=BATCH_EPSILON))},
    "layer_norm": {"var": by(by_deviations(-1))},
    "instance_norm": {"var": by(by_deviations(1, 2))},
    "lrn": {"slices": by(lrn_of_slices)},
    # Softmax and losses
    "softmax": {"exp": by(softmax_by_exp)},
    "log_softmax": {"logsumexp": by(lambda x: x - jax.nn.logsumexp(x, -1, keepdims=True))},
    "cross_entropy": {"log_softmax": by(lambda x, i: jnp.mean(losses_by_log_softmax(x, i)))},
    "cross_entropy_sum": {"log_softmax": by(lambda x, i: jnp.sum(losses_by_log_softmax(x, i)))},
    "binary_cross_entropy": {"Optax's": by(binary_cross_entropy_of_optax)},
    # Indexing
    "gather_rows": {"mode=fill": kernels.with_int32(Call("numpy.take", axis=0))},
    "embedding": {
        "x[i]": kernels.with_int32(by(lambda w, i: w[i])),
        "mode=clip": kernels.with_int32(
            lambda jax, n, d: Call("numpy.take", axis=0, mode="clip")(jax)
        ),
    },
    "gather_elements": {
        "x[rows, i]": kernels.with_int32(by(lambda x, i: x[jnp.arange(len(x))[:, None], i])),
        "vmap": kernels.with_int32(by(jax.vmap(lambda row, i: row[i]))),
    },
    "pick": {
        "x[rows, i]": kernels.with_int32(by(lambda x, i: x[jnp.arange(len(x)), i])),
        "mode=fill": kernels.with_int32(
            by(lambda x, i: jnp.take_along_axis(x, i[:, None], 1)[:, 0])
        ),
        "one_hot": kernels.with_int32(
            by(lambda x, i: jnp.sum(x * jax.nn.one_hot(i, x.shape[1], dtype=x.dtype), 1))
        ),
    },
    "gather_nd": {
        "mode=clip": kernels.with_int32(by(lambda x, i: x.at[i[:, 0], i[:, 1]].get(mode="clip"))),
        "take": kernels.with_int32(
            by(lambda x, i: jnp.take(x, i[:, 0] * x.shape[1] + i[:, 1], mode="clip"))
        ),
    },
    "scatter_add": {
        "segment_sum": kernels.with_int32(
            lambda jax, n, d: Call("ops.segment_sum", num_segments=n)(jax)
        ),
        "promise_in_bounds": kernels.with_int32(
            lambda jax, n, d: (
                lambda x, i: jnp.zeros((n, d), x.dtype).at[i].add(x, mode="promise_in_bounds")
            )
        ),
    },
    "scatter_nd_update": {
        "unique_indices": kernels.with_int32(
            by(lambda x, i, rows: x.at[i].set(rows, unique_indices=True))
        )
    },
    "one_hot": {
        "equal": kernels.with_int32(
            lambda jax, d: lambda i: (i[:, None] == jnp.arange(d)).astype(jnp.float32)
        ),
        "eye": kernels.with_int32(lambda jax, d: lambda i: jnp.eye(d)[i]),
    },
    "boolean_mask": {
        "compress": by(lambda x, mask: jnp.compress(mask, x, 0)),
        "take": by(lambda x, mask: jnp.take(x, jnp.flatnonzero(mask), 0, mode="clip")),
    },
    "sequence_mask": {
        "where": kernels.with_int32(
            lambda jax, d: lambda x, lengths: jnp.where(jnp.arange(d) < lengths[:, None], x, 0)
        )
    },
    # Sorting and searching
    "sort": {
        "stable=False": Call("numpy.sort", axis=1, stable=False),
        "top_k": by(lambda x: -lax.top_k(-x, x.shape[1])[0]),
    },
    "argsort": {
        "stable=False": Call("numpy.argsort", axis=1, stable=False),
        "top_k": by(lambda x: lax.top_k(-x, x.shape[1])[1]),
    },
    "top_k": {"argsort": by(largest_by_argsort), "approx_max_k": Call("lax.approx_max_k", k=5)},
    "unique": {"sort": by(sorted_and_compared)},
    "searchsorted": {
        f"method={method}": Call("numpy.searchsorted", method=method)
        for method in ("scan_unrolled", "sort")
    },
}

_POOLING = "reduce_window is what Flax's pooling calls, as its gradient is"

#: Reasons to call a way that takes longer than another one.
_ACCEPTED = {
    **dict.fromkeys(("max_pool2d", "max_pool2d_3x3_s2", "max_pool1d"), _POOLING),
    "depthwise_conv2d": "Flax's layer calls it",
    "scatter_nd_update": "only the user knows that no place occurs twice",
    "relu": "its gradient at 0 is 0, that of maximum a half",
    "gelu": "by erfc, which keeps the digits of results close to 0",
    "mod": "the formula rounds the quotient, and is wrong for large ones",
    "variance": "of squares it is wrong where the mean is large",
    **dict.fromkeys(
        ("cross_entropy", "cross_entropy_sum"),
        "compiled it takes half the time, as Optax's loss does",
    ),
    "cholesky": "by default it averages the operand with its transpose, which scipy's does not",
    "binary_cross_entropy": "compiled it takes half the time",
    "gather_rows": "it takes half the time without a gradient",
    **dict.fromkeys(("sort", "argsort"), "stable, as NumPy's is if asked, at hardly any cost"),
    "searchsorted": "the default of JAX",
    "unique": "the other is for vectors without NaN alone",
    **dict.fromkeys(("prod", "any"), "the other needs rows whose length 16 divides"),
    "logsumexp": "compiled it takes the same time, and two thirds of it with a gradient",
    "gather_nd": "NumPy's notation; places in the flattened table take 64 bits in large ones",
    "embedding": "Flax's layer calls it",
}

IDIOMS: Idioms = {
    **beside(
        OPERATIONS,
        "JAX's documentation, or Flax's layers, call it",
        _OTHERS,
        _ACCEPTED,
        "JAX's own function for it; the other is a formula",
    ),
    **{
        name: Idiom(
            "einsum",
            "Flax's layer computes it so",
            {
                "dot_product_attention": Laid(
                    Call("nn.dot_product_attention", **mask), POSITIONS_FIRST
                )
            },
        )
        for name, mask in {"attention": {}, "attention_causal": {"is_causal": True}}.items()
    },
}
