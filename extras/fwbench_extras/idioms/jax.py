"""Other public ways of JAX to compute operations, and why they are not called."""

from __future__ import annotations

from functools import reduce
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


def mean_of_log_softmax(x: Any, labels: Any) -> Any:
    return -jnp.mean(kernels.pick(jax.nn.log_softmax(x), labels))


def binary_cross_entropy_of_optax(x: Any, answers: Any) -> Any:
    return jnp.mean(-answers * jax.nn.log_sigmoid(x) - (1 - answers) * jax.nn.log_sigmoid(-x))


#: Other ways than the one of the table, by the operation.
_OTHERS: dict[str, Table] = {
    "relu": {"maximum": by(lambda x: jnp.maximum(x, 0))},
    "gelu": {"erf": by(lambda x: 0.5 * x * (1 + lax.erf(x * 0.5**0.5)))},
    "softplus": {"log1p": by(lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))))},
    "log_sigmoid": {"log1p": by(lambda x: jnp.minimum(x, 0) - jnp.log1p(jnp.exp(-jnp.abs(x))))},
    "hypot": {"sqrt": by(lambda x, y: jnp.sqrt(x * x + y * y))},
    "mod": {"floor": by(lambda x, y: x - jnp.floor(x / y) * y)},
    "variance": {
        "squares": by(lambda x: jnp.mean(jnp.square(x), 1) - jnp.square(jnp.mean(x, 1))),
        "deviations": by(lambda x: jnp.mean(jnp.square(x - jnp.mean(x, 1, keepdims=True)), 1)),
    },
    "argmax": {"top_k": by(lambda x: lax.top_k(x, 1)[1][:, 0])},
    "argmin": {"top_k": by(lambda x: lax.top_k(-x, 1)[1][:, 0])},
    "dot": {"vdot": "numpy.vdot", "sum(x * y)": by(lambda x, y: jnp.sum(x * y))},
    "cholesky": {"scipy": Call("scipy.linalg.cholesky", lower=True)},
    "cumsum": {"lax.cumsum": Call("lax.cumsum", axis=1)},
    "outer": {"x * y": by(lambda x, y: x[:, None] * y)},
    "depthwise_conv2d": {"slices": lambda jax, window: depthwise_of_slices},
    "max_pool2d": {"slices": by(lambda x: reduce(jnp.maximum, slices(x, 2)))},
    "max_pool2d_3x3_s2": {"slices": by(lambda x: reduce(jnp.maximum, slices(x, 3)))},
    "avg_pool2d": {"slices": by(lambda x: sum(slices(x, 2)) / 4)},
    "softmax": {"exp": by(softmax_by_exp)},
    "norm": {"vdot": by(lambda x: jnp.sqrt(jnp.vdot(x, x)))},
    "scatter_nd_update": {
        "unique_indices": kernels.with_int32(
            by(lambda x, i, rows: x.at[i].set(rows, unique_indices=True))
        )
    },
    "lrn": {"slices": by(lrn_of_slices)},
    "max_pool1d": {"slices": by(lambda x: jnp.maximum(x[:, ::2], x[:, 1::2]))},
    "batch_norm_training": {"var": by(by_deviations(0, 1, 2, epsilon=BATCH_EPSILON))},
    "layer_norm": {"var": by(by_deviations(-1))},
    "instance_norm": {"var": by(by_deviations(1, 2))},
    "gather_rows": {"mode=fill": kernels.with_int32(Call("numpy.take", axis=0))},
    "embedding": {"x[i]": kernels.with_int32(by(lambda w, i: w[i]))},
    "binary_cross_entropy": {"Optax's": by(binary_cross_entropy_of_optax)},
    "cross_entropy": {"log_softmax": by(mean_of_log_softmax)},
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
    "cross_entropy": "compiled it takes half the time, as Optax's loss does",
    "binary_cross_entropy": "compiled it takes half the time",
    "gather_rows": "it takes half the time without a gradient",
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
