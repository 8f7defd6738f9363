"""Other public ways of JAX to compute operations, and why they are not called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg  # jax has it once it is imported
import numpy as np
from jax import lax, random

from fwbench.frameworks.jax import kernels
from fwbench.frameworks.jax.operations import OPERATIONS, POSITIONS_FIRST
from fwbench.frameworks.layout import CONV1D, CONV2D, CONV3D, Layout
from fwbench.frameworks.table import Call, Laid, Table, implementation, layout_of
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.convolution import Window
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)
from fwbench.workloads.operations.optimisers import BETA1, BETA2, DECAY, L1, RATE, RHO, TINY
from fwbench.workloads.operations.random import DROPPED
from fwbench_extras.idioms.table import Idiom, Idioms, beside, by, creations

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


def solved_by_lu(x: Any, y: Any) -> Any:
    return jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(x), y)


def log_of_pivots(x: Any) -> Any:
    factors, _, _ = lax.linalg.lu(x)
    return jnp.sum(jnp.log(jnp.abs(jnp.diagonal(factors))))


def singular_values(x: Any) -> Any:
    return lax.linalg.svd(x, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)


def singular_vectors(x: Any) -> Any:
    return lax.linalg.svd(x, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR)


def qr_by_cholesky(x: Any) -> Any:
    lower = jnp.linalg.cholesky(x.T @ x)
    return jax.scipy.linalg.solve_triangular(lower, x.T, lower=True).T, lower.T


def lq_by_cholesky(x: Any) -> Any:
    lower = jnp.linalg.cholesky(x @ x.T)
    return lower, jax.scipy.linalg.solve_triangular(lower, x, lower=True)


# Convolution and pooling


def taps(x: Any, window: Window) -> list[Any]:
    """The parts of the padded images that elements of the kernel meet."""
    pads = [(0, 0), *[(window.padding, window.padding)] * window.rank, (0, 0)]
    around = jnp.pad(x, pads)
    extents = tuple(window.extent(x.shape[1 + axis], axis) for axis in range(window.rank))
    return [around[window.tap(place, extents)] for place in np.ndindex(window.kernel)]


def convolution_of_products(_: Any, window: Window) -> Any:
    """A product for each element of the kernel, and their sum."""

    def convolution(x: Any, w: Any) -> Any:
        weights = w.reshape(-1, *w.shape[-2:])
        return sum(met @ v for met, v in zip(taps(x, window), weights, strict=True))

    return convolution


def convolution_of_patches(_: Any, window: Window) -> Any:
    """A product of patches with the kernel."""

    def convolution(x: Any, w: Any) -> Any:
        return jnp.concatenate(taps(x, window), -1) @ w.reshape(-1, w.shape[-1])

    return convolution


def convolution_of_groups(jax: Any, window: Window) -> Any:
    convolution = partial(kernels.convolution(jax, window), feature_group_count=1)

    def of_groups(x: Any, w: Any) -> Any:
        groups = zip(*(jnp.split(y, window.groups, -1) for y in (x, w)), strict=True)
        return jnp.concatenate([convolution(*group) for group in groups], -1)

    return of_groups


def channels_first(jax: Any, window: Window) -> Any:
    space = "DHW"[-window.rank :] if window.rank > 1 else "L"
    dimensions = (f"NC{space}", f"OI{space}", f"NC{space}")
    return partial(kernels.convolution(jax, window), dimension_numbers=dimensions)


def transposed_of_products(x: Any, w: Any) -> Any:
    """A transposed convolution by 4 x 4 and a stride of 2: products, and sums where they overlap.

    Results of twice the size are rows and columns of pairs; a kernel covers two by two of them.
    """
    n, height, width, c = x.shape
    quarters = w.reshape(2, 2, 2, 2, -1, c)
    pairs: Any = 0
    for i in range(2):
        for j in range(2):
            product = jnp.einsum("nhwc,pqkc->nhpwqk", x, quarters[i, :, j])
            pad = ((0, 0), (i, 1 - i), (0, 0), (j, 1 - j), (0, 0), (0, 0))
            pairs += jnp.pad(product, pad)
    whole = pairs.reshape(n, 2 * height + 2, 2 * width + 2, -1)
    return whole[:, 1:-1, 1:-1]


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


def averages_by_product(x: Any) -> Any:
    pixels = x.reshape(len(x), -1, x.shape[-1])
    means = jnp.full((1, pixels.shape[1]), 1 / pixels.shape[1], x.dtype)
    return (means @ pixels)[:, None]


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


def scale_and_shift(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    scale = lax.rsqrt(variance + BATCH_EPSILON) * gamma
    return x * scale + (beta - mean * scale)


def rms_norm_by_einsum(x: Any, gamma: Any) -> Any:
    squares = jnp.einsum("ntc,ntc->nt", x, x)[..., None]
    return x * lax.rsqrt(squares / x.shape[-1] + EPSILON) * gamma


def group_norm_by_deviations(x: Any, gamma: Any, beta: Any) -> Any:
    grouped = jnp.reshape(x, (*x.shape[:-1], GROUPS, -1))
    return jnp.reshape(by_deviations(1, 2, 4)(grouped, 1, 0), x.shape) * gamma + beta


def lrn_of_slices(x: Any) -> Any:
    around = jnp.pad(jnp.square(x), ((0, 0),) * 3 + ((NEIGHBOURS // 2,) * 2,))
    total = sum(around[..., i : i + x.shape[-1]] for i in range(NEIGHBOURS))
    return x / (BIAS + ALPHA * total) ** BETA


# Losses


def losses_by_log_softmax(x: Any, labels: Any) -> Any:
    return -kernels.pick(jax.nn.log_softmax(x), labels)


def binary_cross_entropy_of_optax(x: Any, answers: Any) -> Any:
    return jnp.mean(-answers * jax.nn.log_sigmoid(x) - (1 - answers) * jax.nn.log_sigmoid(-x))


def mse_by_product(x: Any, y: Any) -> Any:
    distance = jnp.ravel(x - y)
    return jnp.vdot(distance, distance) / distance.size


def huber_of_optax(x: Any, y: Any) -> Any:
    distance = jnp.abs(x - y)
    near = jnp.minimum(distance, 1)
    return jnp.mean(0.5 * near**2 + (distance - near))


# Recurrent layers


def scanned(step: Any, state: Any, weights: Any, operands: Any, unroll: int = 1) -> Any:
    _, states = lax.scan(step, (state, weights), operands, unroll=unroll)
    return jnp.swapaxes(states, 0, 1)


def layers(step: Any, gates: int, states: int = 1) -> Table:
    """Ways of a layer with these gates and arrays of state.

    With four steps in an iteration of the loop; with the parts of each gate taken by steps; with
    the product of the inputs in steps, as in Flax's cells.
    """

    def splitting(carried: Any, sums: Any) -> Any:
        return step(carried, jnp.split(sums, gates, -1))

    def cell(carried: Any, x: Any) -> Any:
        state, (w, b, *weights) = carried
        (state, _), result = splitting((state, (*weights,)), x @ w + b)
        return (state, (w, b, *weights)), result

    def initial(x: Any, units: int) -> Any:
        zeros = kernels.zeros(x, units)
        return zeros if states == 1 else (zeros,) * states

    def unrolled(x: Any, w: Any, u: Any, b: Any, *more: Any) -> Any:
        sums = jnp.split(jnp.swapaxes(x @ w + b, 0, 1), gates, -1)
        return scanned(step, initial(x, len(u)), (u, *more), sums, unroll=4)

    def split_by_step(x: Any, w: Any, u: Any, b: Any, *more: Any) -> Any:
        return scanned(splitting, initial(x, len(u)), (u, *more), jnp.swapaxes(x @ w + b, 0, 1))

    def of_cells(x: Any, w: Any, u: Any, b: Any, *more: Any) -> Any:
        return scanned(cell, initial(x, len(u)), (w, b, u, *more), jnp.swapaxes(x, 0, 1))

    ways = {"unroll=4": by(unrolled), "cells": by(of_cells)}
    return ways if gates == 1 else {**ways, "split by steps": by(split_by_step)}


def masked_afterwards(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
    """All steps for all sequences, and what is behind their ends left out."""
    zeros = kernels.zeros(x, len(w))
    states = kernels.scanned(kernels.lstm_step, 4, x, w, b, (u,), (zeros, zeros))
    within = (jnp.arange(x.shape[1]) < lengths[:, None])[..., None]
    last = jnp.take_along_axis(states, lengths[:, None, None] - 1, 1, mode="clip")[:, 0]
    return jnp.where(within, states, 0), last


# Indexing and sorting


def sorted_and_compared(x: Any) -> Any:
    y = jnp.sort(x)
    return y[jnp.append(True, y[1:] != y[:-1])]


def largest_by_argsort(x: Any) -> Any:
    order = jnp.argsort(x, 1, descending=True)[:, :5]
    return jnp.take_along_axis(x, order, 1), order


# Shapes


def reflected(x: Any) -> Any:
    """Padding by one row and two columns, by the places that elements come from."""
    rows, columns = (np.pad(np.arange(x.shape[i]), i, mode="reflect") for i in (1, 2))
    return x[:, rows][:, :, columns]


def depth_to_space_by_rows(x: Any) -> Any:
    """With the two pixels of a row of a block in one axis with their channels."""
    n, h, w, c = x.shape
    return jnp.swapaxes(x.reshape(n, h, w, 2, c // 2), 2, 3).reshape(n, 2 * h, 2 * w, c // 4)


def diagonal(x: Any) -> Any:
    places = jnp.arange(len(x))
    return x[places, places]


# Random numbers


def by_generator(name: str, *generators: str) -> Table:
    """A random operation with keys of other generators than Threefry."""
    entry = implementation(OPERATIONS, name)

    def keyed(generator: str) -> Implementation:
        def with_key(jax: Any, *parameters: Any) -> Any:
            function: Any = entry(jax, *parameters)
            function.generator = generator
            return function

        return Laid(with_key, layout_of(entry))

    return {generator: keyed(generator) for generator in generators}


#: Logarithms of the probabilities.
_LOGITS = Layout(
    place=lambda operands: [np.log(operands[0])], restore=lambda operands: [np.exp(operands[0])]
)


def categories_of_search(key: Any, p: Any, n: int) -> Any:
    """Categories as ``random.choice`` draws them, with a comparison for each."""
    places = random.uniform(key, (n,), p.dtype)
    return jnp.searchsorted(jnp.cumsum(p)[:-1], places, side="right", method="compare_all")


def dropout_of_bytes(key: Any, x: Any) -> Any:
    kept = 1 - DROPPED
    return jnp.where(random.bits(key, x.shape, "uint8") < int(256 * kept), x / kept, 0)


# Optimisers


def adam_by_rsqrt(decay: float = 0.0) -> Implementation:
    def adam(x: Any, g: Any, m: Any, v: Any) -> Any:
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * jnp.square(g)
        step = m * lax.rsqrt(v + TINY)
        return x - RATE * (step + decay * x if decay else step), m, v

    return by(adam)


def rmsprop_by_rsqrt(x: Any, g: Any, v: Any) -> Any:
    v = RHO * v + (1 - RHO) * jnp.square(g)
    return x - RATE * g * lax.rsqrt(v + TINY), v


def adagrad_by_rsqrt(x: Any, g: Any, v: Any) -> Any:
    v = v + jnp.square(g)
    return x - RATE * g * lax.rsqrt(v + TINY), v


def ftrl_by_clip(x: Any, g: Any, z: Any, v: Any) -> Any:
    later = v + jnp.square(g)
    z = z + g - (jnp.sqrt(later) - jnp.sqrt(v)) / RATE * x
    return -RATE * (z - jnp.clip(z, -L1, L1)) * lax.rsqrt(later), z, later


# Images


def doubled(x: Any, axis: int) -> Any:
    """Twice as long, each pixel mixed with a quarter of either neighbour."""
    edge = [(0, 0)] * x.ndim
    edge[axis] = (1, 1)
    around = jnp.pad(x, edge, mode="edge")
    before, after = (lax.slice_in_dim(around, i, i + x.shape[axis], axis=axis) for i in (0, 2))
    pairs = jnp.stack([0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after], axis + 1)
    return pairs.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])


def four_times(x: Any) -> Any:
    n, h, w, c = x.shape
    pixels = jnp.broadcast_to(x[:, :, None, :, None], (n, h, 2, w, 2, c))
    return pixels.reshape(n, 2 * h, 2 * w, c)


def patches_of_slices(_: Any, h: int, w: int) -> Any:
    return lambda x: jnp.concatenate(
        [x[:, i : i + h, j : j + w] for i in range(3) for j in range(3)], 3
    )


# New arrays of host data


def creator(function: Callable[[Any, str], Any]) -> Implementation:
    """A creator by a function of values and dtype, which waits for the array."""

    def of(_: Any, __: Any, dtype: str) -> Callable[[Any], Any]:
        return lambda values: function(values, dtype).block_until_ready()

    return of


#: Other ways to make arrays of host data.
_CREATIONS: dict[str, Table] = {
    "from_numpy": {
        "dtype": creator(jnp.array),
        "asarray of a copy": creator(lambda values, _: jnp.asarray(values.copy())),
    },
    "from_list": {
        "jnp.array": creator(jnp.array),
        "asarray": creator(lambda values, dtype: jnp.asarray(np.array(values, dtype))),
    },
}

#: Other ways than the one of the table, by the operation.
_OTHERS: dict[str, Table] = {
    # New arrays
    "zeros_like": {
        "zeros": by(lambda x: jnp.zeros(x.shape, x.dtype)),
        "full_like": Call("numpy.full_like", fill_value=0),
    },
    "arange": {"lax.iota": lambda jax, n: lambda x: lax.iota("int32", n)},
    # Activations
    "sigmoid": {
        "lax.logistic": "lax.logistic",
        "tanh": by(lambda x: 0.5 * jnp.tanh(0.5 * x) + 0.5),
    },
    "relu": {"maximum": by(lambda x: jnp.maximum(x, 0))},
    "softsign": {"x / (1 + abs(x))": by(lambda x: x / (1 + jnp.abs(x)))},
    "gelu": {"erf": by(lambda x: 0.5 * x * (1 + lax.erf(x * 0.5**0.5)))},
    "gelu_tanh": {
        "sigmoid": by(lambda x: x * jax.nn.sigmoid(x * (1.5957691 + 0.0713548163 * x * x)))
    },
    "elu": {"where": by(lambda x: jnp.where(x > 0, x, jnp.expm1(x)))},
    "selu": {
        "where": by(
            lambda x: 1.0507009873554805 * jnp.where(x > 0, x, 1.6732632423543772 * jnp.expm1(x))
        )
    },
    "leaky_relu": {"maximum": by(lambda x: jnp.maximum(x, 0.25 * x))},
    "silu": {"x / (1 + exp(-x))": by(lambda x: x / (1 + jnp.exp(-x)))},
    "hard_sigmoid": {"clip": by(lambda x: jnp.clip(x / 6 + 0.5, 0, 1))},
    "softplus": {"log1p": by(lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))))},
    "log_sigmoid": {"log1p": by(lambda x: jnp.minimum(x, 0) - jnp.log1p(jnp.exp(-jnp.abs(x))))},
    # Elementwise arithmetic
    "where": {"lax.select": "lax.select"},
    "rsqrt": {"1 / sqrt(x)": by(lambda x: 1 / jnp.sqrt(x))},
    "clip": {
        "lax.clamp": by(lambda x: lax.clamp(-0.5, x, 0.5)),
        "minimum": by(lambda x: jnp.minimum(jnp.maximum(x, -0.5), 0.5)),
    },
    "round": {"rint": "numpy.rint", "floor(x + 0.5)": by(lambda x: jnp.floor(x + 0.5))},
    "power": {"lax.pow": "lax.pow", "exp(y * log(x))": by(lambda x, y: jnp.exp(y * jnp.log(x)))},
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
    "l2_normalize": {
        "rsqrt": by(lambda x: x * lax.rsqrt(jnp.sum(jnp.square(x), 1, keepdims=True)))
    },
    "outer": {"x * y": by(lambda x, y: x[:, None] * y)},
    "gemm": {
        "dot": "numpy.dot",
        "einsum": by(partial(jnp.einsum, "mk,kn->mn")),
        "lax.dot": "lax.dot",
    },
    "gemv": {
        "sum(x * y)": by(lambda x, y: jnp.sum(x * y, 1)),
        "x @ y[:, None]": by(lambda x, y: (x @ y[:, None])[:, 0]),
    },
    "gemm_tn": {
        "x.T @ y": by(lambda x, y: x.T @ y),
        "tensordot": Call("numpy.tensordot", axes=((0,), (0,))),
        "einsum": by(partial(jnp.einsum, "km,kn->mn")),
    },
    "gemm_nt": {"x @ y.T": by(lambda x, y: x @ y.T), "dot_general": kernels.contraction(1, 1)},
    "batch_gemm": {
        "einsum": by(partial(jnp.einsum, "bmk,bkn->bmn")),
        "vmap": by(jax.vmap(jnp.matmul)),
    },
    "einsum": {
        "matmul": by(lambda x, y: x @ y.swapaxes(1, 2)),
        "dot_general": Call("lax.dot_general", dimension_numbers=(((2,), (2,)), ((0,), (0,)))),
    },
    "tensordot": {
        "reshape": by(lambda x, y: x.reshape(len(x), -1) @ y.reshape(-1, y.shape[-1])),
        "einsum": by(partial(jnp.einsum, "mkl,kln->mn")),
    },
    "linear": {
        "n x k": lambda jax, n: lambda x, w, b: lax.dot_general(x, w, (((1,), (1,)), ((), ()))) + b
    },
    "cholesky": {
        "scipy": Call("scipy.linalg.cholesky", lower=True),
        "symmetrize_input=False": Call("numpy.linalg.cholesky", symmetrize_input=False),
    },
    "solve": {"lu_solve": by(solved_by_lu), "inv(x) @ y": by(lambda x, y: jnp.linalg.inv(x) @ y)},
    "inverse": {"lu_solve": by(lambda x: solved_by_lu(x, jnp.eye(len(x), dtype=x.dtype)))},
    "slogdet": {
        "qr": by(lambda x: jnp.linalg.slogdet(x, method="qr")[1]),
        "log(abs(pivots))": by(log_of_pivots),
    },
    "svd_values": {"SvdAlgorithm.QR": by(singular_values)},
    "svd": {"SvdAlgorithm.QR": by(singular_vectors)},
    "qr": {"scipy": Call("scipy.linalg.qr", mode="economic"), "cholesky": by(qr_by_cholesky)},
    "lq": {"cholesky": by(lq_by_cholesky)},
    "eigh": {
        "scipy": "scipy.linalg.eigh",
        "symmetrize_input=False": Call("numpy.linalg.eigh", symmetrize_input=False),
    },
    # Convolution
    "conv2d": {"NCHW": Laid(channels_first, CONV2D), "patches": convolution_of_patches},
    "conv2d_7x7_s2": {"NCHW": Laid(channels_first, CONV2D), "patches": convolution_of_patches},
    "conv2d_5x20_s2": {"NCHW": Laid(channels_first, CONV2D), "patches": convolution_of_patches},
    "conv2d_3x3": {
        "NCHW": Laid(channels_first, CONV2D),
        "patches": convolution_of_patches,
        "products": convolution_of_products,
    },
    "conv2d_1x1": {"product": by(lambda x, w: x @ w[0, 0]), "NCHW": Laid(channels_first, CONV2D)},
    "conv2d_dilated": {"NCHW": Laid(channels_first, CONV2D), "products": convolution_of_products},
    "conv2d_grouped": {"split": convolution_of_groups},
    "depthwise_conv2d": {"slices": lambda jax, window: depthwise_of_slices},
    "conv2d_transposed": {"products": by(transposed_of_products)},
    "conv3d": {"NCDHW": Laid(channels_first, CONV3D), "products": convolution_of_products},
    "conv1d": {"NCL": Laid(channels_first, CONV1D), "products": convolution_of_products},
    # Pooling
    "max_pool2d": {"slices": by(lambda x: reduce(jnp.maximum, slices(x, 2)))},
    "max_pool2d_3x3_s2": {"slices": by(lambda x: reduce(jnp.maximum, slices(x, 3)))},
    "avg_pool2d": {"slices": by(lambda x: sum(slices(x, 2)) / 4)},
    "global_avg_pool": {
        "product": by(averages_by_product),
        "two means": by(lambda x: jnp.mean(jnp.mean(x, 1, keepdims=True), 2, keepdims=True)),
    },
    "max_pool1d": {"slices": by(lambda x: jnp.maximum(x[:, ::2], x[:, 1::2]))},
    # Normalisation
    "batch_norm_training": {"var": by(by_deviations(0, 1, 2, epsilon=BATCH_EPSILON))},
    "batch_norm_inference": {"scale and shift": by(scale_and_shift)},
    "layer_norm": {"var": by(by_deviations(-1))},
    "rms_norm": {"einsum": by(rms_norm_by_einsum)},
    "group_norm": {"var": by(group_norm_by_deviations)},
    "instance_norm": {"var": by(by_deviations(1, 2))},
    "lrn": {"slices": by(lrn_of_slices)},
    # Softmax and losses
    "softmax": {"exp": by(softmax_by_exp)},
    "log_softmax": {"logsumexp": by(lambda x: x - jax.nn.logsumexp(x, -1, keepdims=True))},
    "cross_entropy": {"log_softmax": by(lambda x, i: jnp.mean(losses_by_log_softmax(x, i)))},
    "cross_entropy_sum": {"log_softmax": by(lambda x, i: jnp.sum(losses_by_log_softmax(x, i)))},
    "binary_cross_entropy": {"Optax's": by(binary_cross_entropy_of_optax)},
    "mse": {"vdot": by(mse_by_product)},
    "huber": {"Optax's": by(huber_of_optax)},
    # Recurrent layers
    "rnn": layers(kernels.rnn_step, 1),
    "lstm": layers(kernels.lstm_step, 4, states=2),
    "gru": layers(kernels.gru_step, 3),
    "dynamic_rnn": {
        "unroll=4": lambda jax, units, steps, loop: partial(
            kernels.dynamic_rnn, partial(lax.scan, unroll=4)
        ),
        "masked afterwards": lambda jax, units, steps, loop: masked_afterwards,
    },
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
    # Shapes and orders of elements
    "concat": {"lax.concatenate": by(lambda x, y: lax.concatenate([x, y], 1))},
    "stack": {"concatenate": by(lambda x, y: jnp.concatenate([x[:, None], y[:, None]], 1))},
    "split": {"lax.split": by(lambda x: lax.split(x, [len(x)] * 4, axis=1))},
    "pad_constant": {
        "lax.pad": by(
            lambda x: lax.pad(
                x, jnp.zeros((), x.dtype), ((0, 0, 0), (1, 1, 0), (2, 2, 0), (0, 0, 0))
            )
        )
    },
    "pad_reflect": {"x[rows][columns]": by(reflected)},
    "tile": {"concatenate": by(lambda x: jnp.concatenate([jnp.concatenate([x] * 3, 1)] * 2, 0))},
    "repeat": {
        "broadcast_to": by(
            lambda x: jnp.broadcast_to(x[..., None], (*x.shape, 3)).reshape(len(x), -1)
        ),
        "x[columns]": by(lambda x: x[:, np.arange(x.shape[1]).repeat(3)]),
    },
    "slice": {
        "x[a:b, a:b]": lambda jax, begin, end: lambda x: x[begin:end, begin:end],
        "dynamic_slice": lambda jax, begin, end: (
            lambda x: lax.dynamic_slice(x, [begin] * 2, [end - begin] * 2)
        ),
    },
    "strided_slice": {"lax.slice": by(lambda x: lax.slice(x, (0, 0), x.shape, (2, 3)))},
    "flip": {"lax.rev": Call("lax.rev", dimensions=(1,)), "x[:, ::-1]": by(lambda x: x[:, ::-1])},
    "roll": {"concatenate": by(lambda x: jnp.concatenate([x[:, -3:], x[:, :-3]], 1))},
    "depth_to_space": {"five axes": by(depth_to_space_by_rows)},
    "tril": {"x * tri": by(lambda x: x * jnp.tri(len(x), dtype=x.dtype))},
    "diag_part": {"x[i, i]": by(diagonal), "stride": by(lambda x: x.reshape(-1)[:: len(x) + 1])},
    # Random numbers
    "random_uniform": by_generator("random_uniform", "rbg", "unsafe_rbg"),
    "random_normal": by_generator("random_normal", "rbg", "unsafe_rbg"),
    "random_bernoulli": by_generator("random_bernoulli", "rbg"),
    "random_integers": {
        **by_generator("random_integers", "rbg"),
        "uniform": kernels.drawn(
            lambda key, like, n: (100 * random.uniform(key, (n,), like.dtype)).astype("int32")
        ),
    },
    "random_gamma": {
        **by_generator("random_gamma", "rbg"),
        "loggamma": kernels.drawn(lambda key, alpha: jnp.exp(random.loggamma(key, alpha))),
    },
    "random_exponential": by_generator("random_exponential", "rbg"),
    "random_shuffle": {
        **by_generator("random_shuffle", "rbg"),
        "argsort": kernels.drawn(lambda key, x: x[jnp.argsort(random.bits(key, x.shape))]),
        "x[permutation]": kernels.drawn(lambda key, x: x[random.permutation(key, len(x))]),
    },
    "random_categorical": {
        **by_generator("random_categorical", "rbg"),
        "categorical": Laid(
            kernels.drawn(lambda key, logits, n: random.categorical(key, logits, shape=(n,))),
            _LOGITS,
        ),
        "searchsorted": kernels.drawn(categories_of_search),
    },
    "dropout": {**by_generator("dropout", "rbg"), "8 bits": kernels.drawn(dropout_of_bytes)},
    # Optimisers
    "adam": {"rsqrt": adam_by_rsqrt()},
    "adamw": {"rsqrt": adam_by_rsqrt(DECAY)},
    "rmsprop": {"rsqrt": by(rmsprop_by_rsqrt)},
    "adagrad": {"rsqrt": by(adagrad_by_rsqrt)},
    "ftrl": {"clip": by(ftrl_by_clip)},
    # Fourier transforms
    "rfft": {"fft": by(lambda x: jnp.fft.fft(x)[:, : x.shape[1] // 2 + 1])},
    "fft2": {"two of fft": by(lambda x: jnp.fft.fft(jnp.fft.fft(x, axis=2), axis=1))},
    # Images
    "resize_bilinear": {"slices": lambda jax, h, w: lambda x: doubled(doubled(x, 1), 2)},
    "resize_nearest": {
        "broadcast_to": lambda jax, h, w: four_times,
        "repeat": lambda jax, h, w: lambda x: jnp.repeat(jnp.repeat(x, 2, 1), 2, 2),
    },
    "im2col": {"slices": patches_of_slices},
}

_POOLING = "reduce_window is what Flax's pooling calls, as its gradient is"

#: Reasons to call a way that takes longer than another one.
_ACCEPTED = {
    "zeros_like": "Optax's optimizers call it",
    "arange": "JAX's documentation calls it, for every start and step",
    "dynamic_rnn": "the loop is what is measured; lstm is the layer without it",
    "rnn": "unrolled it takes twice as long to compile, which eager gradients do in every call",
    "sigmoid": "it is lax.logistic, compiled",
    "elu": "its gradient is a number where exp overflows, too",
    **dict.fromkeys(
        ("softplus", "log_sigmoid"),
        "by logaddexp; eagerly the formula takes up to six times as long",
    ),
    "clip": "lax.clamp takes twice as long eagerly, in small arrays",
    "round": "both call lax.round",
    "sum_columns": "nobody writes a sum as a product, which takes up to five times as long eagerly",
    "std": "of squares it is wrong where the mean is large",
    "max": "top_k is faster in the shortest rows alone, and compiled",
    "cumsum": "the scan takes up to sixty times as long eagerly",
    "avg_pool2d": "Flax's avg_pool calls reduce_window; eagerly slices take three times as long",
    "rms_norm": "as Flax's RMSNorm; eagerly einsum takes up to three times as long in small arrays",
    "softmax": "the formula gains in the smallest arrays alone",
    "log_softmax": "the other takes four times as long eagerly, and more in small arrays",
    "pick": "a product with one_hot gains in rows of 16 numbers alone",
    "one_hot": "rows of eye take up to thirty times as long eagerly",
    "stack": "the other takes two to five times as long eagerly",
    "split": "it calls lax.split",
    "pad_reflect": "rows and columns picked take three times as long eagerly, and more",
    "tile": "the other takes two to five times as long eagerly",
    "repeat": "for every count of each column; the other gains in few cells",
    "depth_to_space": "the other is slower in large images, eagerly",
    "diag_part": "x[i, i] takes three times as long eagerly, and more",
    "argmax": "users call it; that top_k takes a quarter of the time in long rows is a flaw of it",
    "argmin": "users call it; that top_k takes a third of the time in long rows is a flaw of it",
    "hypot": "it scales by the larger number, so that no square overflows",
    "rsqrt": "Flax's normalizations call it",
    **dict.fromkeys(("max_pool2d", "max_pool2d_3x3_s2", "max_pool1d"), _POOLING),
    "einsum": "the notation is what is measured; batch_gemm is the product without it",
    "gemm": "x @ y is matmul; dot gains in the smallest matrices alone, eagerly",
    "gemv": "the formula gains in small matrices alone, compiled",
    "slogdet": "by QR it takes two to three times as long in larger matrices, with a gradient",
    **dict.fromkeys(("qr", "lq"), "it squares the condition of the matrix: digits are lost"),
    "conv2d_transposed": "Flax's ConvTranspose calls it; products gain without a gradient alone",
    "conv3d": "Flax's Conv calls it; products gain compiled alone, least in large volumes",
    "conv2d_1x1": "Flax's Conv calls it; the product is what its Dense calls",
    "conv2d": "as Flax's Conv; patches gain in small images alone, compiled",
    "conv2d_3x3": "as Flax's Conv; channels first, or patches, gain in the smallest images alone",
    **dict.fromkeys(
        ("depthwise_conv2d", "conv2d_grouped"), "Flax's Conv calls it; XLA is slow at it on CPUs"
    ),
    "scatter_nd_update": "only the user knows that no place occurs twice",
    "relu": "its gradient at 0 is 0, that of maximum a half",
    "gelu": "by erfc, which keeps the digits of results close to 0",
    "mod": "the formula rounds the quotient, and is wrong for large ones",
    "variance": "of squares it is wrong where the mean is large",
    **dict.fromkeys(
        ("cross_entropy", "cross_entropy_sum"),
        "compiled it takes half the time, as Optax's loss does",
    ),
    "cholesky": "by default it averages the operand with its transpose, which the others do not",
    "binary_cross_entropy": "compiled it takes half the time",
    "gather_rows": "it takes half the time without a gradient",
    **dict.fromkeys(("sort", "argsort"), "stable, as NumPy's is if asked, at hardly any cost"),
    "searchsorted": "the default of JAX",
    "unique": "the other is for vectors without NaN alone",
    **dict.fromkeys(("prod", "any"), "the other needs rows whose length 16 divides"),
    "logsumexp": "compiled it takes the same time, and two thirds of it with a gradient",
    "gather_nd": "NumPy's notation; places in the flattened table take 64 bits in large ones",
    "embedding": "Flax's layer calls it",
    "concat": "JAX's users call jax.numpy, which makes one dtype of several before",
    **dict.fromkeys(
        ("random_uniform", "random_normal", "random_bernoulli", "random_exponential"),
        "JAX's default generator, Threefry",
    ),
    "random_categorical": "JAX's function for probabilities; categorical gains in the smallest "
    "arrays alone, and comparing with the sums of all is for few categories",
    "random_shuffle": "it sorts twice, as 32 random bits are equal for some of many elements",
    "random_integers": "the other is biased: the numbers of a float32 are no multiple of 100",
    "resize_bilinear": "JAX's own function for it; eagerly slices take five times as long",
    "resize_nearest": "JAX's own function for it, for every factor",
    "im2col": "JAX's own function for it, for every stride and dilation",
    "power": "the formula is wrong for bases below 0, and less precise",
    "gelu_tanh": "compiled, it takes less time with a gradient, in large arrays",
    "strided_slice": "NumPy's notation, which JAX's documentation uses",
}

_DOCUMENTED = "JAX's documentation, or Flax's layers, call it"

IDIOMS: Idioms = {
    **creations("jnp.array of NumPy's", _DOCUMENTED, _CREATIONS, {}),
    **beside(OPERATIONS, _DOCUMENTED, _OTHERS, _ACCEPTED),
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
