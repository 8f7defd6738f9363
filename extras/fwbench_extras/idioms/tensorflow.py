"""Other public ways of TensorFlow to compute operations, and why they are not called."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import tensorflow as tf

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.frameworks.tensorflow import kernels
from fwbench.frameworks.tensorflow.operations import LABELS, OPERATIONS
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.convolution import Window
from fwbench.workloads.operations.normalisation import ALPHA, BATCH_EPSILON, BIAS, EPSILON, GROUPS
from fwbench.workloads.operations.optimisers import (
    BETA1,
    BETA2,
    DECAY,
    L1,
    MOMENTUM,
    RATE,
    RHO,
    TINY,
)
from fwbench.workloads.operations.random import DROPPED
from fwbench_extras.idioms.table import Idioms, beside, by, creations

# Elementwise arithmetic


def chosen(otherwise: Callable[[Any], Any]) -> Implementation:
    """A function of negative numbers; others stay."""
    return by(lambda x: tf.where(x > 0, x, otherwise(x)))


def selu_of_minimum(x: Any) -> Any:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * tf.nn.relu(x) + scale * alpha * tf.math.expm1(tf.minimum(x, 0.0))


def expm1_of_tanh(x: Any) -> Any:
    t = tf.tanh(0.5 * x)
    return 2.0 * t / (1.0 - t)


def truncated_mod(x: Any, y: Any) -> Any:
    rest = tf.truncatemod(x, y)
    return tf.where(rest * y < 0, rest + y, rest)


def sum_with_mask(mask: Any, x: Any, y: Any) -> Any:
    share = tf.cast(mask, x.dtype)
    return share * x + (1.0 - share) * y


# Reductions


def product_of_halves(x: Any) -> Any:
    while x.shape[1] % 2 == 0:
        x = tf.multiply(*tf.split(x, 2, 1))
    return tf.reduce_prod(x, 1)


def logsumexp_of_cross_entropy(x: Any) -> Any:
    labels = tf.zeros(x.shape[:1], tf.int32)
    return x[:, 0] + tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)


def cumsum_of_product(x: Any) -> Any:
    ones = tf.ones([x.shape[1]] * 2, x.dtype)
    return tf.matmul(x, tf.linalg.band_part(ones, 0, -1))


# Vectors and matrices


def cholesky_lq(x: Any) -> tuple[Any, Any]:
    lower = tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True))
    return lower, tf.linalg.triangular_solve(lower, x)


def cholesky_qr(x: Any) -> tuple[Any, Any]:
    r, q = map(tf.linalg.matrix_transpose, cholesky_lq(tf.linalg.matrix_transpose(x)))
    return q, r


def inverse_of_qr(x: Any) -> Any:
    q, r = tf.linalg.qr(x)
    return tf.linalg.triangular_solve(r, tf.linalg.matrix_transpose(q), lower=False)


def log_of_diagonal(x: Any) -> Any:
    return tf.reduce_sum(tf.math.log(tf.abs(tf.linalg.diag_part(x))))


# Convolution


def depthwise_of_slices(x: Any, w: Any) -> Any:
    around = tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = x.shape[1:3]
    return tf.add_n(
        [
            around[:, i : i + rows, j : j + columns] * w[i, j, :, 0]
            for i in range(3)
            for j in range(3)
        ]
    )


def convolution_of_planes(tf: Any, window: Window) -> Any:
    """Channels first, of which oneDNN has kernels."""
    convolution = kernels.conv2d(tf, window)
    padding = convolution.keywords["padding"]
    if not isinstance(padding, str):
        padding = [padding[axis] for axis in (0, 3, 1, 2)]
    return partial(convolution, padding=padding, data_format="NCHW")


def convolution_of_patches(tf: Any, window: Window) -> Any:
    """A product of patches with the kernel; images keep their size where they can."""
    p, step, ones = window.padding, (1, window.stride, window.stride, 1), (1, 1, 1, 1)
    same = bool(p) and window.stride == 1

    def convolution(x: Any, w: Any) -> Any:
        around = tf.pad(x, ((0, 0), (p, p), (p, p), (0, 0))) if p and not same else x
        sizes, padding = (1, *window.kernel, 1), "SAME" if same else "VALID"
        patches = tf.image.extract_patches(around, sizes, step, ones, padding)
        return tf.tensordot(patches, tf.reshape(w, (-1, w.shape[-1])), 1)

    return convolution


def convolution_of_products(tf: Any, window: Window) -> Any:
    """A sum of products of what each element of the kernel meets with that element."""
    pads = [(0, 0), *[(window.padding, window.padding)] * window.rank, (0, 0)]

    def convolution(x: Any, w: Any) -> Any:
        around = tf.pad(x, pads)
        extents = tuple(window.extent(x.shape[1 + axis], axis) for axis in range(window.rank))
        return tf.add_n(
            [
                tf.tensordot(around[window.tap(place, extents)], w[place], 1)
                for place in np.ndindex(window.kernel)
            ]
        )

    return convolution


def convolution_of_groups(tf: Any, window: Window) -> Any:
    def convolution(x: Any, w: Any) -> Any:
        groups = zip(*(tf.split(y, window.groups, -1) for y in (x, w)), strict=True)
        return tf.concat([tf.nn.conv2d(*group, 1, "SAME") for group in groups], -1)

    return convolution


def convolution_of_blocks(x: Any, w: Any) -> Any:
    """7 x 7 with a stride of 2 as 4 x 4 of blocks of 2 x 2, as in MLPerf's ResNet for TPUs."""
    channels, filters = w.shape[2:]
    blocks = tf.nn.space_to_depth(tf.pad(x, ((0, 0), (3, 3), (3, 3), (0, 0))), 2)
    w = tf.reshape(tf.pad(w, ((0, 1), (0, 1), (0, 0), (0, 0))), (4, 2, 4, 2, channels, filters))
    w = tf.reshape(tf.transpose(w, (0, 2, 1, 3, 4, 5)), (4, 4, 4 * channels, filters))
    return tf.nn.conv2d(blocks, w, 1, "VALID")


def subpixel_convolution(x: Any, w: Any) -> Any:
    """4 x 4, transposed, with a stride of 2, as 3 x 3 with four times as many filters."""
    filters, channels = w.shape[2:]
    w = tf.pad(w, ((1, 1), (1, 1), (0, 0), (0, 0)))
    w = tf.reverse(tf.reshape(w, (3, 2, 3, 2, filters, channels)), [0, 2])
    w = tf.reshape(tf.transpose(w, (0, 2, 5, 1, 3, 4)), (3, 3, channels, 4 * filters))
    return tf.nn.depth_to_space(tf.nn.conv2d(x, w, 1, "SAME"), 2)


def volumes_of_images(x: Any, w: Any) -> Any:
    """A sum of convolutions of images, of 3 x 3 for each depth of the kernel."""
    n, depth, *image = x.shape
    around = tf.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0), (0, 0)))
    images = (tf.reshape(around[:, i : i + depth], (n * depth, *image)) for i in range(3))
    sums = tf.add_n([tf.nn.conv2d(y, w[i], 1, "SAME") for i, y in enumerate(images)])
    return tf.reshape(sums, (*x.shape[:-1], w.shape[-1]))


# Pooling


def slices(x: Any, extent: int) -> list[Any]:
    """The images that each position of square windows sees, which move by two."""
    rows, columns = ((size - extent) // 2 * 2 + 1 for size in x.shape[1:3])
    places = [(i, j) for i in range(extent) for j in range(extent)]
    return [x[:, i : i + rows : 2, j : j + columns : 2] for i, j in places]


# Normalisation


def batch_norm_of_moments(x: Any, gamma: Any, beta: Any) -> Any:
    mean, variance = tf.nn.moments(x, (0, 1, 2))
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, BATCH_EPSILON)


def fused_layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    """Normalisation of a batch with a channel for every row, as in Keras 2's layer."""
    rows = tf.reshape(x, (1, -1, x.shape[-1], 1))
    ones = tf.ones(rows.shape[1:2])
    fused = tf.compat.v1.nn.fused_batch_norm
    normal = fused(rows, ones, tf.zeros_like(ones), epsilon=EPSILON, data_format="NCHW")[0]
    return tf.reshape(normal, x.shape) * gamma + beta


def fused_instance_norm(x: Any, gamma: Any, beta: Any) -> Any:
    """Each image as a batch."""
    fused = partial(tf.compat.v1.nn.fused_batch_norm, epsilon=EPSILON)
    return tf.concat([fused(image, gamma, beta)[0] for image in tf.split(x, x.shape[0], 0)], 0)


def group_norm_of_channels(x: Any, gamma: Any, beta: Any) -> Any:
    """Moments of channels, and of groups by them."""
    grouped = (x.shape[0], 1, GROUPS, x.shape[-1] // GROUPS)
    mean, variance = (tf.reshape(y, grouped) for y in tf.nn.moments(x, (1, 2)))
    means = tf.reduce_mean(mean, 3, keepdims=True)
    variances = tf.reduce_mean(variance + tf.square(mean - means), 3, keepdims=True)
    factors = tf.reshape(gamma, grouped[2:]) * tf.math.rsqrt(variances + EPSILON)
    offsets = tf.reshape(beta, grouped[2:]) - means * factors
    each = (x.shape[0], 1, 1, x.shape[-1])
    return x * tf.reshape(factors, each) + tf.reshape(offsets, each)


def rms_norm_of_einsum(x: Any, gamma: Any) -> Any:
    squares = tf.einsum("ntc,ntc->nt", x, x)[..., None]
    return x * tf.math.rsqrt(squares / x.shape[-1] + EPSILON) * gamma


def lrn(sums: Callable[[Any], Any]) -> Implementation:
    """Local response normalisation, by a function for the sums of neighbours."""

    def normalised(x: Any) -> Any:
        root = tf.math.rsqrt(BIAS + ALPHA * sums(tf.square(x)))
        return x * root * tf.sqrt(root)

    return by(normalised)


def sums_of_slices(x: Any) -> Any:
    around = tf.pad(x, ((0, 0), (0, 0), (0, 0), (2, 2)))
    return tf.add_n([around[..., i : i + x.shape[-1]] for i in range(5)])


def sums_of_product(x: Any) -> Any:
    ones = tf.ones([x.shape[-1]] * 2, x.dtype)
    return tf.tensordot(x, tf.linalg.band_part(ones, 2, 2), 1)


# Softmax and losses


def softmax_of_exp(x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def losses_of_log_softmax(x: Any, i: Any) -> Any:
    return -tf.gather(tf.nn.log_softmax(x), i, batch_dims=1)


def losses_of_one_hot(x: Any, i: Any) -> Any:
    return tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(i, x.shape[1]), x)


# Attention


def attention_by_einsum(q: Any, k: Any, v: Any) -> Any:
    scores = tf.einsum("bhqd,bhkd->bhqk", q * q.shape[-1] ** -0.5, k)
    return tf.einsum("bhqk,bhkd->bhqd", tf.nn.softmax(scores), v)


# Recurrent layers


def rnn_step(u: Any, _: Any, states: Any, sums: Any) -> tuple[Any, Any]:
    state, cell = states
    return tf.tanh(sums + state @ u), cell


def lstm_step(u: Any, _: Any, states: Any, sums: Any) -> tuple[Any, Any]:
    state, cell = states
    entry, keep, new, exit_ = tf.split(sums + state @ u, 4, axis=-1)
    cell = tf.sigmoid(keep) * cell + tf.sigmoid(entry) * tf.tanh(new)
    return tf.sigmoid(exit_) * tf.tanh(cell), cell


def gru_step(u: Any, b: Any, states: Any, sums: Any) -> tuple[Any, Any]:
    state, cell = states
    of_sums, of_states = (tf.split(y, 3, axis=-1) for y in (sums, state @ u + b))
    update, reset = (tf.sigmoid(x + y) for x, y in zip(of_sums[:2], of_states[:2], strict=True))
    new = tf.tanh(of_sums[2] + reset * of_states[2])
    return update * state + (1 - update) * new, cell


def unrolled(step: Callable[..., Any], sums: Any, states: Any) -> tuple[Any, Any]:
    """``tf.scan`` by a loop of Python's."""
    every = [states := step(states, now) for now in tf.unstack(sums)]
    return tuple(map(tf.stack, zip(*every, strict=True)))


def stepping(
    step: Callable[..., tuple[Any, Any]], loop: Callable[..., tuple[Any, Any]]
) -> Implementation:
    """A layer by a loop, after the products of all inputs at once."""

    def implementation(tf: Any, units: int) -> Callable[..., Any]:
        def call(x: Any, w: Any, u: Any, b: Any) -> Any:
            biases = tf.reshape(b, (-1, w.shape[1]))
            sums = tf.transpose(tf.tensordot(x, w, 1) + biases[0], (1, 0, 2))
            zeros = tf.zeros((x.shape[0], units), x.dtype)
            states, _ = loop(partial(step, u, biases[-1]), sums, (zeros, zeros))
            return tf.transpose(states, (1, 0, 2))

        return call

    return implementation


def recurrent(layer: str, step: Callable[..., tuple[Any, Any]]) -> dict[str, Implementation]:
    """The ways of a layer of Keras: unrolled by it, and by loops of its steps."""
    return {
        "unroll=True": kernels.recurrent_layer(layer, unroll=True),
        "for-loop": stepping(step, unrolled),
        "scan": stepping(step, tf.scan),
    }


def block_lstm(tf: Any, units: int) -> Callable[..., Any]:
    """By the kernel of TensorFlow 1's ``LSTMBlockFusedCell``: input, cell, forget, output."""

    def reordered(y: Any) -> Any:
        entry, keep, new, exit_ = tf.split(y, 4, -1)
        return tf.concat([entry, new, keep, exit_], -1)

    def call(x: Any, w: Any, u: Any, b: Any) -> Any:
        zeros, none = tf.zeros((x.shape[0], units), x.dtype), tf.zeros(units, x.dtype)
        every = tf.raw_ops.BlockLSTM(
            seq_len_max=x.shape[1],
            x=tf.transpose(x, (1, 0, 2)),
            cs_prev=zeros,
            h_prev=zeros,
            w=reordered(tf.concat([w, u], 0)),
            **dict.fromkeys(("wci", "wcf", "wco"), none),
            b=reordered(b),
            forget_bias=0.0,
            cell_clip=-1.0,
        )
        return tf.transpose(every.h, (1, 0, 2))

    return call


def masked_layer(tf: Any, units: int) -> Callable[..., Any]:
    """By Keras' layer, which masks times behind the end of a sequence."""
    layer = kernels.recurrent_layer("LSTM", return_state=True, zero_output_for_mask=True)(tf, units)

    def call(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
        states, state, _ = layer(x, w, u, b, mask=tf.sequence_mask(lengths, x.shape[1]))
        return states, state

    return call


def masked_scan(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
    def step(before: Any, now: Any) -> Any:
        sums, within = now
        after = lstm_step(u, None, before[:2], sums)
        state, cell = (tf.where(within, *pair) for pair in zip(after, before[:2], strict=True))
        return state, cell, tf.where(within, state, zeros)

    zeros = tf.zeros((x.shape[0], u.shape[0]), x.dtype)
    sums = tf.tensordot(tf.transpose(x, (1, 0, 2)), w, 1) + b
    within = tf.transpose(tf.sequence_mask(lengths, x.shape[1]))[..., None]
    every, _, states = tf.scan(step, (sums, within), (zeros, zeros, zeros))
    return tf.transpose(states, (1, 0, 2)), every[-1]


# Indexing


def gather_flat(x: Any, i: Any) -> Any:
    """Elements of rows by their places in the flattened matrix."""
    first = tf.range(x.shape[0], dtype=i.dtype)[:, None] * x.shape[1]
    return tf.gather(tf.reshape(x, [-1]), first + i)


def rows_replaced(x: Any, i: Any, rows: Any) -> Any:
    """Rows gathered from both tables."""
    new = x.shape[0] + tf.range(rows.shape[0])
    places = tf.tensor_scatter_nd_update(tf.range(x.shape[0]), i, new)
    return tf.gather(tf.concat([x, rows], 0), places)


# Sorting and searching


def top_of_argsort(x: Any) -> tuple[Any, Any]:
    places = tf.argsort(x, 1, "DESCENDING")[:, :5]
    return tf.gather(x, places, batch_dims=1), places


# Shapes and orders of elements


def transposed_depth(x: Any) -> Any:
    """``tf.nn.depth_to_space`` of blocks of 2 x 2 by a transposition."""
    n, h, w, c = x.shape
    blocks = tf.transpose(tf.reshape(x, (n, h, w, 2, 2, c // 4)), (0, 1, 3, 2, 4, 5))
    return tf.reshape(blocks, (n, 2 * h, 2 * w, c // 4))


def permuted_matrices(x: Any) -> Any:
    n, h, w, c = x.shape
    return tf.reshape(tf.linalg.matrix_transpose(tf.reshape(x, (n, h * w, c))), (n, c, h, w))


def zeros_around(x: Any) -> Any:
    n, h, w, c = x.shape
    row, columns = tf.zeros((n, 1, w, c), x.dtype), tf.zeros((n, h + 2, 2, c), x.dtype)
    return tf.concat([columns, tf.concat([row, x, row], 1), columns], 2)


def reflected(x: Any) -> Any:
    x = tf.concat([x[:, 1:2], x, x[:, -2:-1]], 1)
    return tf.concat([x[:, :, 2:0:-1], x, x[:, :, -2:-4:-1]], 2)


def reflected_places(x: Any) -> Any:
    rows, columns = (np.pad(np.arange(x.shape[i]), i, "reflect") for i in (1, 2))
    return tf.gather(tf.gather(x, rows, axis=1), columns, axis=2)


def strided_places(x: Any) -> Any:
    n, m = x.shape
    return tf.gather(tf.gather(x, tf.range(0, n, 2)), tf.range(0, m, 3), axis=1)


def lower_mask(x: Any) -> Any:
    places = tf.range(x.shape[0])
    return tf.where(places[:, None] >= places, x, 0.0)


# Random numbers


def generated(draw: Callable[..., Any]) -> Implementation:
    """By a generator that is an object, which the documentation recommends."""

    def implementation(tf: Any, *parameters: int) -> Callable[[Any], Any]:
        generator = tf.random.Generator.from_seed(1)
        return lambda x: draw(generator, x, *parameters)

    return implementation


def seed() -> Any:
    """Seeds for functions without a state."""
    return tf.random.uniform((2,), maxval=tf.int32.max, dtype=tf.int32)


def categories_of_gumbel(tf: Any, n: int) -> Callable[[Any], Any]:
    def draw(logits: Any) -> Any:
        uniform = tf.random.uniform((n, logits.shape[1]), dtype=logits.dtype)
        return tf.argmax(logits - tf.math.log(-tf.math.log(uniform)), 1)[None]

    return draw


def categories_of_search(tf: Any, n: int) -> Callable[[Any], Any]:
    """By the distribution function."""

    def draw(logits: Any) -> Any:
        ends = tf.cumsum(tf.nn.softmax(logits[0]))[:-1]
        return tf.searchsorted(ends, tf.random.uniform((n,), dtype=logits.dtype))[None]

    return draw


def masked_dropout(x: Any) -> Any:
    kept = tf.random.uniform(x.shape, dtype=x.dtype) >= DROPPED
    return x * (tf.cast(kept, x.dtype) / (1.0 - DROPPED))


# Optimisers


def applied(kernel: str, variables: str, gradient: str = "grad", **numbers: Any) -> Implementation:
    """By a kernel of TensorFlow 1's optimisers, which takes the variables by these names."""

    def implementation(tf: Any) -> Callable[..., None]:
        apply = partial(getattr(tf.raw_ops, kernel), **numbers)

        def step(x: Any, g: Any, *states: Any) -> None:
            arrays = (array.handle for array in (x, *states))
            apply(**dict(zip(variables.split(), arrays, strict=True)), **{gradient: g})

        return step

    return implementation


#: Its corrections of the bias are 1.
_RAW_ADAM = applied(
    *("ResourceApplyAdam", "var m v"),
    beta1_power=0.0,
    beta2_power=0.0,
    beta1=BETA1,
    beta2=BETA2,
    lr=RATE,
    epsilon=TINY,
)


def raw_adamw(tf: Any) -> Callable[..., None]:
    adam = _RAW_ADAM(tf)

    def step(x: Any, g: Any, m: Any, v: Any) -> None:
        x.assign_sub(RATE * DECAY * x)
        adam(x, g, m, v)

    return step


def assigned_sgd(x: Any, g: Any) -> None:
    x.assign_sub(RATE * g)


def raw_rmsprop(tf: Any) -> Callable[..., None]:
    """Its kernel has a momentum, too."""
    made: list[Any] = []
    apply = applied(
        *("ResourceApplyRMSProp", "var ms mom"), lr=RATE, rho=RHO, momentum=0.0, epsilon=TINY
    )(tf)

    def step(x: Any, g: Any, v: Any) -> None:
        if not made:
            with tf.init_scope():
                made.append(tf.Variable(tf.zeros(x.shape, x.dtype)))
        apply(x, g, v, made[0])

    return step


# Images


def doubled(x: Any, axis: int) -> Any:
    """Twice as long: three quarters of a pixel and one of its neighbour."""
    length, space = x.shape[axis], (slice(None),) * axis
    pads = [(int(i == axis),) * 2 for i in range(4)]
    around = tf.pad(x, pads, "SYMMETRIC")
    before, after = around[(*space, slice(length))], around[(*space, slice(2, None))]
    pairs = tf.stack([0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after], axis + 1)
    return tf.reshape(pairs, [size * (1 + (i == axis)) for i, size in enumerate(x.shape)])


_DENSE = axes("", "nk->kn")
_KERNELS = axes("", "hwio->hwoi")
_HEADS_LAST = axes(*["bhtd->bthd"] * 3, results=["bhtd->bthd"])


#: Products of matrices: their letters, and the axes that they are summed along.
_PRODUCTS = {
    "gemm": ("mk,kn->mn", (1, 0)),
    "gemm_nn": ("mk,kn->mn", (1, 0)),
    "gemm_tn": ("km,kn->mn", (0, 0)),
    "gemm_nt": ("mk,nk->mn", (1, 1)),
}

#: The layout of images that is not called.
_PLANES = axes("nhwc->nchw", "", results=["nhwc->nchw"])
_NCHW = {"NCHW": Laid(convolution_of_planes, _PLANES)}


#: Other ways than the one of the table, by the operation.
_OTHERS: dict[str, Table] = {
    # New arrays
    "zeros_like": {
        "zeros": by(lambda x: tf.zeros(x.shape, x.dtype)),
        "fill": by(lambda x: tf.fill(x.shape, tf.constant(0, x.dtype))),
    },
    "arange": {"linspace": lambda tf, n: lambda x: tf.cast(tf.linspace(0.0, n - 1, n), tf.int32)},
    # Activations
    "sigmoid": {
        "exp": by(lambda x: 1.0 / (1.0 + tf.exp(-x))),
        "tanh": by(lambda x: 0.5 * tf.tanh(0.5 * x) + 0.5),
    },
    "relu": {"maximum": by(lambda x: tf.maximum(x, 0.0)), "where": chosen(lambda x: 0.0 * x)},
    "tanh": {
        "sigmoid": by(lambda x: 2.0 * tf.sigmoid(2.0 * x) - 1.0),
        "exp": by(lambda x: 1.0 - 2.0 / (tf.exp(2.0 * x) + 1.0)),
    },
    "softplus": {
        "log1p": by(lambda x: tf.maximum(x, 0.0) + tf.math.log1p(tf.exp(-tf.abs(x)))),
        "unguarded": by(lambda x: tf.math.log(1.0 + tf.exp(x))),
    },
    "softsign": {"quotient": by(lambda x: x / (1.0 + tf.abs(x)))},
    "gelu": {
        "erf": by(lambda x: x * (0.5 + 0.5 * tf.math.erf(x * math.sqrt(0.5)))),
        "erfc": by(lambda x: 0.5 * x * tf.math.erfc(x * -math.sqrt(0.5))),
    },
    "elu": {
        "where": chosen(tf.math.expm1),
        "minimum": by(lambda x: tf.nn.relu(x) + tf.math.expm1(tf.minimum(x, 0.0))),
    },
    "selu": {"minimum": by(selu_of_minimum)},
    "leaky_relu": {
        "maximum": by(lambda x: tf.maximum(x, 0.25 * x)),
        "relu": by(lambda x: 0.25 * x + 0.75 * tf.nn.relu(x)),
    },
    "hard_sigmoid": {"clip_by_value": by(lambda x: tf.clip_by_value(x / 6 + 0.5, 0.0, 1.0))},
    "log_sigmoid": {"log1p": by(lambda x: tf.minimum(x, 0.0) - tf.math.log1p(tf.exp(-tf.abs(x))))},
    "silu": {"x * sigmoid(x)": by(lambda x: x * tf.sigmoid(x))},
    "gelu_tanh": {
        "x * x * x": by(lambda x: x * tf.sigmoid(x * (1.5957691 + 0.0713548163 * x * x)))
    },
    # Elementwise arithmetic
    "clip": {
        "minimum": by(lambda x: tf.minimum(tf.maximum(x, -0.5), 0.5)),
        "ClipByValue": by(
            lambda x: tf.raw_ops.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.5)
        ),
    },
    "abs": {"maximum": by(lambda x: tf.maximum(x, -x))},
    "negative": {"difference": by(lambda x: 0.0 - x), "product": by(lambda x: -1.0 * x)},
    "sign": {"comparisons": by(lambda x: tf.cast(x > 0, x.dtype) - tf.cast(x < 0, x.dtype))},
    "exp": {"expm1": by(lambda x: tf.math.expm1(x) + 1.0)},
    "expm1": {"tanh": by(expm1_of_tanh)},
    "log1p": {"atanh": by(lambda x: 2.0 * tf.atanh(x / (2.0 + x)))},
    "sqrt": {"rsqrt": by(lambda x: x * tf.math.rsqrt(x)), "pow": by(lambda x: x**0.5)},
    "rsqrt": {"sqrt": by(lambda x: 1.0 / tf.sqrt(x)), "pow": by(lambda x: x**-0.5)},
    "square": {"product": by(lambda x: x * x), "pow": by(lambda x: x**2)},
    "reciprocal": {
        "quotient": by(lambda x: 1.0 / x),
        "reciprocal_no_nan": "math.reciprocal_no_nan",
        "pow": by(lambda x: x**-1),
    },
    "sin": {"cos": by(lambda x: tf.cos(x - math.pi / 2))},
    "cos": {"sin": by(lambda x: tf.sin(x + math.pi / 2))},
    "arctan": {
        "atan2": by(lambda x: tf.atan2(x, tf.ones_like(x))),
        "asin": by(lambda x: tf.asin(x * tf.math.rsqrt(1.0 + x * x))),
    },
    "erf": {"erfc": by(lambda x: 1.0 - tf.math.erfc(x))},
    "erfinv": {"ndtri": by(lambda x: tf.math.ndtri(0.5 * x + 0.5) * math.sqrt(0.5))},
    "floor": {"ceil": by(lambda x: -tf.math.ceil(-x)), "floordiv": by(lambda x: x // 1.0)},
    "round": {"rint": "math.rint", "floor": by(lambda x: tf.floor(x + 0.5))},
    "round_half_even": {"rint": "math.rint"},
    "isnan": {"not_equal": by(lambda x: tf.not_equal(x, x))},
    "logical_not": {
        "equal": by(lambda x: tf.equal(x, False)),
        "xor": by(lambda x: tf.math.logical_xor(x, True)),
    },
    **{
        f"cast_{dtype}": {
            "saturate_cast": Call("saturate_cast", dtype=dtype),
            "raw_ops.Cast": by(lambda x, dtype=dtype: tf.raw_ops.Cast(x=x, DstT=dtype)),
        }
        for dtype in ("float16", "bfloat16", "int32")
    },
    "add": {"add_n": by(lambda x, y: tf.add_n([x, y]))},
    "subtract": {"negative": by(lambda x, y: x + -y)},
    "divide": {
        "reciprocal": by(lambda x, y: x * tf.math.reciprocal(y)),
        "divide_no_nan": "math.divide_no_nan",
        "divide": "divide",
    },
    "maximum": {
        "where": by(lambda x, y: tf.where(x > y, x, y)),
        "relu": by(lambda x, y: y + tf.nn.relu(x - y)),
    },
    "minimum": {
        "where": by(lambda x, y: tf.where(x < y, x, y)),
        "relu": by(lambda x, y: y - tf.nn.relu(y - x)),
    },
    "power": {"exp": by(lambda x, y: tf.exp(y * tf.math.log(x)))},
    "mod": {"floor": by(lambda x, y: x - y * tf.floor(x / y)), "truncatemod": by(truncated_mod)},
    "hypot": {
        "sqrt": by(lambda x, y: tf.sqrt(x * x + y * y)),
        "complex": by(lambda x, y: tf.abs(tf.complex(x, y))),
    },
    "arctan2": {"angle": by(lambda x, y: tf.math.angle(tf.complex(y, x)))},
    "greater": {"less": by(lambda x, y: tf.less(y, x))},
    "equal": {"not_equal": by(lambda x, y: tf.logical_not(tf.not_equal(x, y)))},
    "logical_and": {"where": by(lambda x, y: tf.where(x, y, False))},
    "where": {"compat.v1.where": "compat.v1.where", "products": by(sum_with_mask)},
    "multiply_add": {"add_n": by(lambda x, y, z: tf.add_n([x * y, z]))},
    "add_row": {"add": "add"},
    # Reductions
    "sum": {
        "product": by(lambda x: tf.tensordot(x, tf.ones_like(x), 2)),
        "rows first": by(lambda x: tf.reduce_sum(tf.reduce_sum(x, 1))),
    },
    "sum_rows": {"matvec": by(lambda x: tf.linalg.matvec(x, tf.ones_like(x[0])))},
    "mean": {
        "sum": by(lambda x: tf.reduce_sum(x, 1) / x.shape[1]),
        "matvec": by(lambda x: tf.linalg.matvec(x, tf.ones_like(x[0])) / x.shape[1]),
    },
    "variance": {"moments": by(lambda x: tf.nn.moments(x, [1])[1])},
    "std": {"moments": by(lambda x: tf.sqrt(tf.nn.moments(x, [1])[1]))},
    "max": {
        "top_k": by(lambda x: tf.math.top_k(x, 1)[0][:, 0]),
        "argmax": by(lambda x: tf.gather(x, tf.argmax(x, 1), batch_dims=1)),
    },
    "min": {
        "negative": by(lambda x: -tf.reduce_max(-x, 1)),
        "argmin": by(lambda x: tf.gather(x, tf.argmin(x, 1), batch_dims=1)),
    },
    "prod": {
        "cumprod": by(lambda x: tf.math.cumprod(x, 1)[:, -1]),
        "halves": by(product_of_halves),
    },
    "norm": {
        "reduce_euclidean_norm": "math.reduce_euclidean_norm",
        "global_norm": by(lambda x: tf.linalg.global_norm([x])),
    },
    "logsumexp": {
        "log_softmax": by(lambda x: x[:, 0] - tf.nn.log_softmax(x)[:, 0]),
        "cross entropy": by(logsumexp_of_cross_entropy),
        "unguarded": by(lambda x: tf.math.log(tf.reduce_sum(tf.exp(x), 1))),
    },
    "cumsum": {"product": by(cumsum_of_product)},
    "any": {
        "max": by(lambda x: tf.reduce_max(tf.cast(x, tf.uint8), 1) > 0),
        "count_nonzero": by(lambda x: tf.math.count_nonzero(x, 1) > 0),
    },
    "argmax": {
        "int32": Call("argmax", axis=1, output_type="int32"),
        "top_k": by(lambda x: tf.math.top_k(x, 1)[1][:, 0]),
    },
    "argmin": {
        "int32": Call("argmin", axis=1, output_type="int32"),
        "top_k": by(lambda x: tf.math.top_k(-x, 1)[1][:, 0]),
    },
    "sum_columns": {"matvec": by(lambda x: tf.linalg.matvec(x, tf.ones_like(x[:, 0]), True))},
    # Vectors and matrices
    **{
        name: {
            "einsum": by(partial(tf.einsum, letters)),
            "tensordot": Call("tensordot", axes=along),
        }
        for name, (letters, along) in _PRODUCTS.items()
    },
    "flatten": {"ravel": "keras.ops.ravel"},
    "dot": {"tensordot": Call("tensordot", axes=1), "keras.ops.dot": "keras.ops.dot"},
    "outer": {
        "tensordot": Call("tensordot", axes=0),
        "keras.ops.outer": "keras.ops.outer",
        "product": by(lambda x, y: tf.expand_dims(x, 1) * y),
        "matmul": by(lambda x, y: tf.matmul(tf.expand_dims(x, 1), tf.expand_dims(y, 0))),
    },
    "l2_normalize": {
        "norm": by(lambda x: x / tf.norm(x, axis=1, keepdims=True)),
        "einsum": by(lambda x: x * tf.math.rsqrt(tf.einsum("nm,nm->n", x, x))[:, None]),
    },
    "gemv": {
        "einsum": by(partial(tf.einsum, "mk,k->m")),
        "tensordot": Call("tensordot", axes=1),
        "sum": by(lambda x, y: tf.reduce_sum(x * y, 1)),
    },
    "batch_gemm": {
        "einsum": by(partial(tf.einsum, "bmk,bkn->bmn")),
        "loop": by(lambda x, y: tf.stack([*map(tf.matmul, tf.unstack(x), tf.unstack(y))])),
    },
    "einsum": {"matmul": Call("matmul", transpose_b=True)},
    "tensordot": {
        "einsum": by(partial(tf.einsum, "mkl,kln->mn")),
        "matmul": by(
            lambda x, y: tf.reshape(x, (x.shape[0], -1)) @ tf.reshape(y, (-1, y.shape[-1]))
        ),
    },
    "linear": {
        "x @ w + b": Laid(by(lambda x, w, b: x @ w + b), _DENSE),
        "einsum": Laid(by(lambda x, w, b: tf.einsum("mk,kn->mn", x, w) + b), _DENSE),
    },
    "cholesky": {"keras.ops.cholesky": "keras.ops.cholesky"},
    "solve": {
        "inv": by(lambda x, y: tf.matmul(tf.linalg.inv(x), y)),
        "lu": by(lambda x, y: tf.linalg.lu_solve(*tf.linalg.lu(x), y)),
        "lstsq": "linalg.lstsq",
    },
    "triangular_solve": {
        "solve": by(lambda x, y: tf.linalg.solve(tf.linalg.band_part(x, -1, 0), y)),
        "inv": by(lambda x, y: tf.matmul(tf.linalg.inv(tf.linalg.band_part(x, -1, 0)), y)),
    },
    "inverse": {
        "solve": by(lambda x: tf.linalg.solve(x, tf.eye(x.shape[0], dtype=x.dtype))),
        "lu": by(lambda x: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(x))),
        "qr": by(inverse_of_qr),
    },
    "slogdet": {
        "det": by(lambda x: tf.math.log(tf.abs(tf.linalg.det(x)))),
        "lu": by(lambda x: log_of_diagonal(tf.linalg.lu(x)[0])),
        "qr": by(lambda x: log_of_diagonal(tf.linalg.qr(x)[1])),
    },
    "svd_values": {"svd": by(lambda x: tf.linalg.svd(x)[0])},
    "qr": {"cholesky": by(cholesky_qr)},
    "lq": {"cholesky": by(cholesky_lq)},
    # Convolution
    "conv2d": {**_NCHW, "patches": convolution_of_patches, "products": convolution_of_products},
    "conv2d_5x20_s2": {**_NCHW, "patches": convolution_of_patches},
    "conv2d_3x3": {
        **_NCHW,
        "keras.ops.conv": by(lambda x, w: tf.keras.ops.conv(x, w, padding="same")),
        "patches": convolution_of_patches,
        "products": convolution_of_products,
    },
    "conv2d_1x1": {**_NCHW, "tensordot": by(lambda x, w: tf.tensordot(x, w[0, 0], 1))},
    "conv2d_7x7_s2": {"patches": convolution_of_patches, "blocks": by(convolution_of_blocks)},
    "conv2d_dilated": {
        **_NCHW,
        "atrous_conv2d": by(lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME")),
        "products": convolution_of_products,
    },
    "conv2d_grouped": {**_NCHW, "split": convolution_of_groups},
    "depthwise_conv2d": {
        "keras.ops.depthwise_conv": Laid(
            by(lambda x, w: tf.keras.ops.depthwise_conv(x, w, 1, "same")), _KERNELS
        ),
        "slices": Laid(by(depthwise_of_slices), _KERNELS),
    },
    "conv2d_transposed": {
        "keras.ops.conv_transpose": by(
            lambda x, w: tf.keras.ops.conv_transpose(x, w, 2, padding="same")
        ),
        "depth_to_space": by(subpixel_convolution),
    },
    "conv1d": {"conv2d": by(lambda x, w: tf.nn.conv2d(x[:, None], w[None], 1, "SAME")[:, 0])},
    "conv3d": {"conv2d": by(volumes_of_images), "products": convolution_of_products},
    # Pooling
    "max_pool2d": {"slices": by(lambda x: reduce(tf.maximum, slices(x, 2)))},
    "max_pool2d_3x3_s2": {"slices": by(lambda x: reduce(tf.maximum, slices(x, 3)))},
    "avg_pool2d": {"slices": by(lambda x: tf.add_n(slices(x, 2)) / 4)},
    "max_pool1d": {"slices": by(lambda x: tf.maximum(x[:, ::2], x[:, 1::2]))},
    "global_avg_pool": {"avg_pool2d": by(lambda x: tf.nn.avg_pool2d(x, x.shape[1:3], 1, "VALID"))},
    # Normalisation
    "batch_norm_training": {"moments": by(batch_norm_of_moments)},
    "batch_norm_inference": {"batch_normalization": by(kernels.unfused_batch_norm)},
    "layer_norm": {
        "keras.ops": Call("keras.ops.layer_normalization", epsilon=EPSILON),
        "fused_batch_norm": by(fused_layer_norm),
    },
    "rms_norm": {
        "keras.ops": Call("keras.ops.rms_normalization", epsilon=EPSILON),
        "einsum": by(rms_norm_of_einsum),
        "l2_normalize": by(
            lambda x, gamma: tf.math.l2_normalize(x, -1, EPSILON) * (gamma * x.shape[-1] ** 0.5)
        ),
    },
    "group_norm": {"channels first": by(group_norm_of_channels)},
    "instance_norm": {"fused_batch_norm": by(fused_instance_norm)},
    "lrn": {"slices": lrn(sums_of_slices), "product": lrn(sums_of_product)},
    # Softmax and losses
    "softmax": {
        "exp": by(softmax_of_exp),
        "log_softmax": by(lambda x: tf.exp(tf.nn.log_softmax(x))),
    },
    "log_softmax": {
        "logsumexp": by(lambda x: x - tf.reduce_logsumexp(x, 1, keepdims=True)),
        "log": by(lambda x: tf.math.log(tf.nn.softmax(x))),
    },
    "cross_entropy": {
        "log_softmax": by(lambda x, i: tf.reduce_mean(losses_of_log_softmax(x, i))),
        "one_hot": by(lambda x, i: tf.reduce_mean(losses_of_one_hot(x, i))),
    },
    "cross_entropy_sum": {
        "log_softmax": by(lambda x, i: tf.reduce_sum(losses_of_log_softmax(x, i))),
        "one_hot": by(lambda x, i: tf.reduce_sum(losses_of_one_hot(x, i))),
    },
    "binary_cross_entropy": {
        "softplus": by(lambda x, y: tf.reduce_mean(tf.nn.softplus(x) - x * y))
    },
    "mse": {"l2_loss": by(lambda x, y: tf.nn.l2_loss(x - y) * (2 / x.shape.num_elements()))},
    "huber": {"keras": by(lambda x, y: tf.reduce_mean(tf.keras.losses.huber(x, y)))},
    "ctc_loss": {"sparse labels": Laid(partial(kernels.ctc_loss, sparse=True), LABELS)},
    # Attention
    "attention": {
        "keras.ops": Laid("keras.ops.dot_product_attention", _HEADS_LAST),
        "einsum": by(attention_by_einsum),
    },
    "attention_causal": {
        "keras.ops": Laid(Call("keras.ops.dot_product_attention", is_causal=True), _HEADS_LAST)
    },
    # Recurrent layers
    "rnn": recurrent("SimpleRNN", rnn_step),
    "lstm": {**recurrent("LSTM", lstm_step), "BlockLSTM": block_lstm},
    "gru": {way: Laid(entry, kernels.GRU) for way, entry in recurrent("GRU", gru_step).items()},
    "dynamic_rnn": {
        "LSTM(mask)": lambda tf, units, steps, loop: masked_layer(tf, units),
        "scan": lambda tf, units, steps, loop: masked_scan,
    },
    # Indexing
    "gather_rows": {
        "gather_nd": by(lambda x, i: tf.gather_nd(x, i[:, None])),
        "one_hot": by(lambda x, i: tf.matmul(tf.one_hot(i, x.shape[0], dtype=x.dtype), x)),
    },
    "embedding": {"embedding_lookup": lambda tf, n, d: tf.nn.embedding_lookup},
    "pick": {"gather_nd": by(lambda x, i: tf.gather_nd(x, i[:, None], 1))},
    "gather_elements": {"flat": by(gather_flat)},
    "gather_nd": {
        "flat": by(lambda x, i: tf.gather(tf.reshape(x, [-1]), i[:, 0] * x.shape[1] + i[:, 1]))
    },
    "scatter_add": {
        "segment_sum": lambda tf, n, d: Call("math.unsorted_segment_sum", num_segments=n)(tf)
    },
    "scatter_nd_update": {"gather": Laid(by(rows_replaced), kernels.COORDINATES)},
    "one_hot": {
        "equal": lambda tf, d: (
            lambda i: tf.cast(i[:, None] == tf.range(d, dtype=i.dtype), tf.float32)
        ),
        "eye": lambda tf, d: lambda i: tf.gather(tf.eye(d), i),
    },
    "boolean_mask": {"where": by(lambda x, mask: tf.gather(x, tf.where(mask)[:, 0]))},
    "sequence_mask": {"where": lambda tf, d: lambda x, i: tf.where(tf.sequence_mask(i, d), x, 0.0)},
    # Sorting and searching
    "sort": {"top_k": by(lambda x: tf.reverse(tf.math.top_k(x, x.shape[1])[0], [1]))},
    "argsort": {"top_k": by(lambda x: tf.reverse(tf.math.top_k(x, x.shape[1])[1], [1]))},
    "top_k": {
        "argsort": by(top_of_argsort),
        "approx_max_k": Call("math.approx_max_k", k=5, recall_target=1.0),
    },
    "searchsorted": {
        "LowerBound": by(
            lambda x, y: tf.raw_ops.LowerBound(sorted_inputs=x[None], values=y[None])[0]
        )
    },
    # Shapes and orders of elements
    "transpose": {
        "einsum": by(partial(tf.einsum, "nm->mn")),
        "matrix_transpose": "linalg.matrix_transpose",
    },
    "permute_nhwc_nchw": {
        "matrix_transpose": by(permuted_matrices),
        "unstack": by(lambda x: tf.stack(tf.unstack(x, axis=3), 1)),
    },
    "concat": {"stack": by(lambda x, y: tf.reshape(tf.stack([x, y], 1), (x.shape[0], -1)))},
    "stack": {"concat": by(lambda x, y: tf.reshape(tf.concat([x, y], 1), (x.shape[0], 2, -1)))},
    "split": {
        "slices": by(lambda x: [x[:, i * x.shape[0] : (i + 1) * x.shape[0]] for i in range(4)]),
        "unstack": by(lambda x: tf.unstack(tf.reshape(x, (x.shape[0], 4, -1)), axis=1)),
    },
    "pad_constant": {
        "concat": by(zeros_around),
        "pad_to_bounding_box": by(
            lambda x: tf.image.pad_to_bounding_box(x, 1, 2, x.shape[1] + 2, x.shape[2] + 4)
        ),
    },
    "pad_reflect": {"concat": by(reflected), "gather": by(reflected_places)},
    "tile": {"concat": by(lambda x: tf.concat([tf.concat([x] * 3, 1)] * 2, 0))},
    "repeat": {
        "tile": by(lambda x: tf.reshape(tf.tile(x[..., None], (1, 1, 3)), (x.shape[0], -1)))
    },
    "slice": {"x[a:b, a:b]": lambda tf, begin, end: lambda x: x[begin:end, begin:end]},
    "strided_slice": {
        "strided_slice": by(lambda x: tf.strided_slice(x, [0, 0], x.shape, [2, 3])),
        "gather": by(strided_places),
    },
    "flip": {
        "x[:, ::-1]": by(lambda x: x[:, ::-1]),
        "gather": by(lambda x: tf.gather(x, tf.range(x.shape[1] - 1, -1, -1), axis=1)),
        "flip_left_right": by(lambda x: tf.image.flip_left_right(x[..., None])[..., 0]),
    },
    "roll": {
        "concat": by(lambda x: tf.concat([x[:, -3:], x[:, :-3]], 1)),
        "gather": by(lambda x: tf.gather(x, (tf.range(x.shape[1]) - 3) % x.shape[1], axis=1)),
    },
    "broadcast_to": {
        "tile": lambda tf, n: lambda x: tf.tile(x, (n, 1)),
        "product": lambda tf, n: lambda x: x * tf.ones((n, 1), x.dtype),
        "matmul": lambda tf, n: lambda x: tf.matmul(tf.ones((n, 1), x.dtype), x),
    },
    "depth_to_space": {"transpose": by(transposed_depth)},
    "tril": {
        "product": by(lambda x: x * tf.linalg.band_part(tf.ones_like(x), -1, 0)),
        "where": by(lower_mask),
    },
    "diag_part": {"diag_part": "linalg.diag_part"},
    # Random numbers
    "random_uniform": {
        "Generator": generated(lambda g, like, n: g.uniform((n,), dtype=like.dtype)),
        "stateless": lambda tf, n: (
            lambda like: tf.random.stateless_uniform((n,), seed(), dtype=like.dtype)
        ),
    },
    "random_normal": {
        "Generator": generated(lambda g, like, n: g.normal((n,), dtype=like.dtype)),
        "stateless": lambda tf, n: (
            lambda like: tf.random.stateless_normal((n,), seed(), dtype=like.dtype)
        ),
    },
    "random_bernoulli": {
        "Generator": generated(
            lambda g, p: tf.cast(g.uniform(p.shape, dtype=p.dtype) < p, p.dtype)
        ),
        "floor": by(lambda p: tf.floor(tf.random.uniform(p.shape, dtype=p.dtype) + p)),
        "stateless_binomial": by(
            lambda p: tf.random.stateless_binomial(p.shape, seed(), 1.0, p, p.dtype)
        ),
    },
    "random_integers": {
        "Generator": generated(lambda g, _, n: g.uniform((n,), 0, 100, tf.int32)),
        "cast": lambda tf, n: lambda _: tf.cast(tf.random.uniform((n,), 0.0, 100.0), tf.int32),
    },
    "random_gamma": {
        "stateless": by(
            lambda alpha: tf.random.stateless_gamma(alpha.shape, seed(), alpha, dtype=alpha.dtype)
        )
    },
    "random_poisson": {
        "stateless": by(
            lambda rates: tf.random.stateless_poisson(rates.shape, seed(), rates, rates.dtype)
        )
    },
    "random_exponential": {
        "gamma": lambda tf, n: lambda like: tf.random.gamma((n,), 1.0, 2.0, like.dtype),
        "Generator": generated(
            lambda g, like, n: tf.math.log(1 - g.uniform((n,), dtype=like.dtype)) / -2
        ),
    },
    "random_shuffle": {
        "argsort": by(lambda x: tf.gather(x, tf.argsort(tf.random.uniform(x.shape)))),
        "stateless": by(lambda x: tf.random.experimental.stateless_shuffle(x, seed())),
    },
    "random_categorical": {
        "stateless": Laid(
            lambda tf, n: lambda logits: tf.random.stateless_categorical(logits, n, seed()),
            kernels.LOGITS,
        ),
        "Gumbel": Laid(categories_of_gumbel, kernels.LOGITS),
        "searchsorted": Laid(categories_of_search, kernels.LOGITS),
    },
    "dropout": {
        "stateless": by(lambda x: tf.nn.experimental.stateless_dropout(x, DROPPED, seed())),
        "Generator": generated(
            lambda g, x: tf.nn.experimental.general_dropout(x, DROPPED, g.uniform)
        ),
        "product": by(masked_dropout),
    },
    # Optimisers
    "sgd": {
        "raw_ops": applied("ResourceApplyGradientDescent", "var", "delta", alpha=RATE),
        "assign_sub": by(assigned_sgd),
    },
    "momentum": {
        "raw_ops": applied("ResourceApplyMomentum", "var accum", lr=RATE, momentum=MOMENTUM)
    },
    "nesterov": {
        "raw_ops": applied(
            *("ResourceApplyMomentum", "var accum"), lr=RATE, momentum=MOMENTUM, use_nesterov=True
        )
    },
    "adam": {"raw_ops": _RAW_ADAM},
    "adamw": {"raw_ops": raw_adamw},
    "rmsprop": {"raw_ops": raw_rmsprop},
    "adagrad": {"raw_ops": applied("ResourceApplyAdagradV2", "var accum", lr=RATE, epsilon=TINY)},
    "ftrl": {
        "raw_ops": applied(
            *("ResourceApplyFtrl", "var linear accum"), lr=RATE, l1=L1, l2=0.0, lr_power=-0.5
        )
    },
    # Fourier transforms
    "rfft": {"fft": by(lambda x: tf.signal.fft(tf.cast(x, "complex64"))[:, : x.shape[1] // 2 + 1])},
    "fft2": {
        "fft": by(
            lambda x: tf.linalg.matrix_transpose(
                tf.signal.fft(tf.linalg.matrix_transpose(tf.signal.fft(x)))
            )
        )
    },
    # Images
    "resize_bilinear": {
        "slices": by(lambda x: doubled(doubled(x, 1), 2)),
        "antialias": lambda tf, h, w: Call("image.resize", size=(h, w), antialias=True)(tf),
    },
    "resize_nearest": {
        "repeat": by(lambda x: tf.repeat(tf.repeat(x, 2, 1), 2, 2)),
        "depth_to_space": by(lambda x: tf.nn.depth_to_space(tf.concat([x] * 4, 3), 2)),
    },
    "im2col": {
        "slices": lambda tf, h, w: (
            lambda x: tf.concat([x[:, i : i + h, j : j + w] for i in range(3) for j in range(3)], 3)
        )
    },
}
#: Reasons to call a way that takes longer than another one.
_ACCEPTED = {
    "relu": "in eager execution maximum takes three times as long with a gradient",
    "log_sigmoid": "in short vectors the formula takes twice as long in eager execution",
    **dict.fromkeys(
        ("cast_int32", "cast_bfloat16"),
        "in eager execution saturate_cast takes three to six times as long",
    ),
    "rsqrt": "faster in large gradients under XLA alone; in eager execution 3 to 5 times as long",
    "reciprocal": "outside of XLA a quotient takes up to four times as long with its gradient",
    **dict.fromkeys(
        ("maximum", "minimum"), "the formula rounds a difference: its results are not the operands"
    ),
    "logical_and": "outside of XLA the choice takes up to twice as long",
    **dict.fromkeys(
        ("variance", "std"),
        "users call it; the moments take twice as long in large arrays in eager execution",
    ),
    "add": "users call it, or +: add_n takes lists, and arrays of one shape alone",
    "equal": "in eager execution two operators take half as long again",
    "negative": "in eager execution differences and products take two to three times as long",
    "sign": "in eager execution comparisons take five times as long and more",
    "erf": "1 - erfc loses the digits of results close to 0",
    "arctan": "in eager execution the others take two to five times as long",
    "expm1": "the quotient is infinite from 18 on, where tanh is rounded to 1",
    "divide": "the product rounds twice, and divide_no_nan makes 0 of what is infinite",
    "gemv": "users call it; einsum and sum are faster in small eager matrices alone",
    "tensordot": "users call it; its Python for any axes shows in small matrices",
    "cumsum": "the product takes time and memory by the square of the length",
    "inverse": "the decomposition has no gradient, and XLA does not compile it",
    "conv2d_1x1": "Keras' layer calls it; in eager execution tensordot takes up to 7 times as long",
    "conv2d_7x7_s2": "Keras' layer calls it; in small images blocks take longer outside of XLA",
    "conv3d": "Keras' layer calls it; outside of XLA sums take up to twenty times as long",
    "layer_norm": "fused_batch_norm takes twice as long in large graphs, and float32 alone",
    "gather_rows": "in eager execution gather_nd takes up to four times as long",
    "gather_elements": "without a gradient flat places take up to eight times as long",
    "gather_nd": "in eager execution flat places take up to ten times as long",
    "top_k": "approx_max_k is for TPUs; on CPUs it calls the same kernel with less Python",
    "searchsorted": "users call it: it takes batches of any rank, by Python around the kernel",
    "transpose": "einsum calls the same kernel once it has read its equation",
    "pad_constant": "outside of XLA joining zeros takes twice as long",
    "pad_reflect": "with a gradient the other ways take up to ten times as long",
    "roll": "outside of XLA joining takes up to twelve times as long",
    "depth_to_space": "in eager execution transposing takes up to nine times as long",
    "random_shuffle": "outside of XLA sorting takes twenty times as long",
    "dropout": "faster under XLA alone; in eager execution a Generator takes 5 times as long",
    "resize_bilinear": "users call it: slices are written for one factor, and lose outside of XLA",
    "gelu_tanh": "Keras' activation calls nn.gelu, which computes the cube by pow",
    "outer": "einsum's documentation has it; only in graphs gradients of products are faster",
    **dict.fromkeys(
        ("cross_entropy", "cross_entropy_sum"),
        "Keras' loss calls the kernel, which computes the gradient in the same pass",
    ),
    **dict.fromkeys(
        ("rnn", "gru", "lstm"),
        "users call Keras' layer: unrolled it is for short sequences alone, loops of one's own are "
        "other layers, and XLA has no BlockLSTM, which is TensorFlow 1's",
    ),
    "binary_cross_entropy": "Keras' loss calls it; the formula is faster in small arrays alone",
    "boolean_mask": "users call it: it checks shapes, and takes masks of several axes",
    "tile": "users call it: that joining copies takes half the time is a flaw of its kernel",
    "repeat": "users call it; faster in small arrays alone",
    "lrn": "AlexNet's layer; the product grows with the square of the channels",
    "im2col": "users call it: slices are written for one window, and it takes strides and rates",
    "random_categorical": "users call it: it takes logits, and keeps no sums of all classes",
    **dict.fromkeys(
        ("round", "round_half_even"), "rint has no kernels of float16 and bfloat16 outside of XLA"
    ),
    **dict.fromkeys(
        ("qr", "lq"),
        "the formula squares the condition number, and fails where vectors are nearly dependent",
    ),
    "softplus": "unguarded it overflows where numbers are large",
    "gelu": "by erfc, which keeps the digits of results close to 0",
    "clip": "eager gradients of the kernel take half as long again",
    "cast_float16": "users call tf.cast, which is a microsecond or two of Python",
    "silu": "its gradient computes the sigmoid again, and keeps no array for it",
    "power": "the formula is not a number for negative bases, and off where results are large",
    "mod": "the formula rounds the quotient, and is wrong for large ones",
    "where": "code of TensorFlow 2 calls tf.where, which broadcasts; the other is TensorFlow 1's",
    "sum_columns": "the kernel is that of a bias's gradient",
    "prod": "without a gradient halves take up to twelve times as long",
    "norm": "XLA does not compile the kernel, and global_norm is for gradients of a model",
    "logsumexp": "unguarded it overflows where numbers are large",
    "argmax": "top_k is faster in large arrays alone; in small ones it takes seven times as long",
    "conv2d_grouped": "Keras' layer calls it",
    **dict.fromkeys(
        ("depthwise_conv2d", "max_pool2d", "max_pool2d_3x3_s2", "max_pool1d", "avg_pool2d"),
        "Keras' layer calls it; slices are faster in some shapes under XLA alone",
    ),
    "global_avg_pool": "Keras' layer of this name takes the mean",
    "group_norm": "Keras' layer takes the moments of groups",
    "instance_norm": "Keras' layer computes it so; XLA takes longer for one image after the other",
    "mse": "Keras' loss is the mean of squares",
    "ctc_loss": "Keras calls it so; with sparse labels gradients are off by 5e-5, and XLA fails",
    "scatter_add": "with a gradient it takes two thirds of the time",
    "sort": "faster by some microseconds of Python, which matter in one short row alone",
    "argsort": "ties would not keep their order; faster in one short row alone",
    "diag_part": "outside of XLA its gradient takes an eighth of the time",
    **dict.fromkeys(
        [
            f"random_{name}"
            for name in ("uniform", "normal", "bernoulli", "integers", "exponential")
        ],
        "a Generator is faster under XLA alone, and takes twice as long for a thousand numbers",
    ),
    "permute_nhwc_nchw": "channel by channel it is faster in the smallest images alone",
    "resize_nearest": "depth_to_space is faster in the smallest images alone",
    **dict.fromkeys(
        ("sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "ftrl"),
        "users of TensorFlow 2 call Keras' optimisers, which do not call these kernels",
    ),
}

#: Other ways to make tensors of host data.
_CREATIONS: dict[str, Table] = {
    "from_numpy": {
        "convert_to_tensor": lambda *_: tf.convert_to_tensor,
        "identity": lambda *_: tf.identity,
    },
    "from_list": {
        "by NumPy": lambda _, __, dtype: lambda values: tf.constant(np.array(values, dtype)),
        "convert_to_tensor": lambda _, __, dtype: Call("convert_to_tensor", dtype=dtype)(tf),
    },
}

_DOCUMENTED = "TensorFlow's documentation or Keras' layers call it"

IDIOMS: Idioms = {
    **creations("tf.constant", _DOCUMENTED, _CREATIONS, {}),
    **beside(OPERATIONS, _DOCUMENTED, _OTHERS, _ACCEPTED),
}
