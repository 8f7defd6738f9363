"""Other public ways of MXNet to compute operations, and why they are not called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import (
    CHANNELS_FIRST,
    CONV1D,
    CONV2D,
    CONV2D_TRANSPOSED,
    SEQUENCE_CHANNELS_FIRST,
    Arrays,
    Layout,
    axes,
    reset_first,
)
from fwbench.frameworks.mxnet import kernels
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)
from fwbench.workloads.operations.optimisers import DECAY, L1, MOMENTUM, RATE, RHO, TINY
from fwbench.workloads.operations.random import DROPPED
from fwbench_extras.idioms.table import Idiom, Idioms, creations


def gelu_by_tanh(F: Any, x: Any) -> Any:
    return 0.5 * x * (1 + F.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def rows_by_dot(F: Any) -> Any:
    def summed(x: Any) -> Any:
        ones = F.ones_like(F.slice_axis(x, axis=0, begin=0, end=1))
        return F.reshape(F.dot(x, ones, transpose_b=True), shape=(-1,))

    return summed


def log_of_sum(F: Any, x: Any) -> Any:
    peaks = F.max(x, axis=1, keepdims=True)
    sums = F.sum(F.exp(F.broadcast_sub(x, peaks)), axis=1, keepdims=True)
    return F.reshape(F.log(sums) + peaks, shape=(-1,))


def labels_in_dtype(arrays: Arrays) -> list[NDArray[Any]]:
    """Labels in the dtype of the numbers."""
    x, labels = arrays
    return [x, labels.astype(x.dtype)]


def labels_int64(arrays: Arrays) -> list[NDArray[Any]]:
    x, labels = arrays
    return [x, labels.astype(np.int64)]


def attention_by_batch_dot(F: Any) -> Callable[..., Any]:
    """Its batches have one axis for batch and heads."""

    def attend(*projections: Any) -> Any:
        q, k, v = (x.reshape((-3, 0, 0)) for x in projections)
        weights = F.softmax(F.batch_dot(F.contrib.div_sqrt_dim(q), k, transpose_b=True))
        return F.reshape_like(F.batch_dot(weights, v), projections[0])

    return attend


def masked_by_product(F: Any, d: int) -> Any:
    def masked(x: Any, lengths: Any) -> Any:
        ends = F.expand_dims(F.cast(lengths, dtype="float32"), axis=1)
        return F.broadcast_lesser(F.expand_dims(F.arange(d), axis=0), ends) * x

    return masked


def convolution_as_images(F: Any, window: Any) -> Any:
    """Sequences as images of one row."""
    options: dict[str, Any] = {"kernel": (1, *window.kernel), "pad": (0, window.padding)}
    convolve = partial(F.Convolution, num_filter=window.filters, no_bias=True, **options)
    as_images = partial(F.expand_dims, axis=2)
    return lambda x, w: F.squeeze(convolve(as_images(x), as_images(w)), axis=2)


def pooling_as_images(F: Any) -> Any:
    pool = partial(F.Pooling, kernel=(1, 2), stride=(1, 2), pool_type="max")
    return lambda x: F.squeeze(pool(F.expand_dims(x, axis=2)), axis=2)


def factors_first(F: Any) -> Any:
    """Batch normalisation by a product and a sum of vectors that are combined first."""

    def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        factor = gamma * F.rsqrt(variance + BATCH_EPSILON)
        vectors = (F.reshape(y, shape=(1, -1, 1, 1)) for y in (factor, beta - mean * factor))
        product, offset = vectors
        return F.broadcast_add(F.broadcast_mul(x, product), offset)

    return batch_norm


def layer_norm_of_parts(F: Any) -> Any:
    def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
        deviation = F.broadcast_sub(x, F.mean(x, axis=-1, keepdims=True))
        variance = F.mean(F.square(deviation), axis=-1, keepdims=True)
        standard = F.broadcast_mul(deviation, F.rsqrt(variance + EPSILON))
        return F.broadcast_add(F.broadcast_mul(standard, gamma), beta)

    return layer_norm


def rms_norm_by_l2(F: Any) -> Any:
    """The operator divides by the root of the sum of squares, in which its epsilon is."""

    def rms_norm(x: Any, gamma: Any) -> Any:
        count = gamma.shape[0]
        rows = F.reshape(x, shape=(-3, 0))
        unit = F.L2Normalization(rows, eps=EPSILON * count, mode="instance")
        return F.broadcast_mul(F.reshape_like(unit, x), gamma * count**0.5)

    return rms_norm


def product_by_layer(F: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """By the operator of Gluon's Dense, whose weights are the transposed factor."""

    def product(x: Any, y: Any) -> Any:
        left, right = F.transpose(x) if transpose_a else x, y if transpose_b else F.transpose(y)
        return F.FullyConnected(left, right, num_hidden=right.shape[0], no_bias=True)

    return product


# Sums by products of matrices, which are BLAS's


def first_row(F: Any, x: Any) -> Any:
    return F.slice_axis(x, axis=0, begin=0, end=1)


def means_by_dot(F: Any) -> Any:
    def means(x: Any) -> Any:
        shares = F.softmax(F.zeros_like(first_row(F, x)))
        return F.reshape(F.dot(x, shares, transpose_b=True), shape=(-1,))

    return means


def variance_by_dot(F: Any) -> Any:
    def variance(x: Any) -> Any:
        zeros = F.zeros_like(first_row(F, x))
        mean = F.dot(x, F.softmax(zeros), transpose_b=True)
        deviation = F.linalg.gemm(mean, F.ones_like(zeros), x, alpha=-1.0)
        return means_by_dot(F)(F.square(deviation))

    return variance


def row_by_gemm(F: Any) -> Any:
    def added(x: Any, row: Any) -> Any:
        ones = F.ones_like(F.slice_axis(x, axis=1, begin=0, end=1))
        return F.linalg.gemm(ones, row, x)

    return added


def mean_square_by_dot(F: Any) -> Any:
    def mean_square(x: Any, y: Any) -> Any:
        distances = F.reshape(x - y, shape=(-1,))
        count = F.cast(F.size_array(distances), dtype="float32")
        return F.dot(distances, distances) / count

    return mean_square


def row_maxima_by_pooling(F: Any) -> Any:
    """Rows as the channels of one image."""
    pool = partial(F.Pooling, kernel=(1, 1), global_pool=True, pool_type="max")
    return lambda x: F.reshape(pool(x.reshape((-4, 1, -1, -4, 1, -1))), shape=(-1,))


# Elementwise arithmetic, losses


def arctan_of_quotient(F: Any) -> Any:
    return lambda y, x: F.arctan(y / x) + 3.141592653589793 * (x < 0) * F.sign(y)


def huber_by_where(F: Any) -> Any:
    """Written as in Gluon's loss."""

    def loss(x: Any, y: Any) -> Any:
        distance = F.abs(x - y)
        return F.mean(F.where(distance > 1, distance - 0.5, 0.5 * F.square(distance)))

    return loss


def huber_by_clip(F: Any) -> Any:
    def loss(x: Any, y: Any) -> Any:
        distance = x - y
        within = F.clip(distance, a_min=-1.0, a_max=1.0)
        return F.mean(within * (distance - 0.5 * within))

    return loss


# Linear algebra


def solved_by_lq(F: Any) -> Any:
    def solve(a: Any, b: Any) -> Any:
        q, lower = F.linalg.gelqf(a)
        return F.dot(q, F.linalg.trsm(lower, b), transpose_a=True)

    return solve


def singular_values_by_syevd(F: Any) -> Any:
    return lambda x: F.sqrt(F.reverse(F.linalg.syevd(F.linalg.syrk(x))[1], axis=0))


def qr_by_potrf(F: Any) -> Any:
    def qr(x: Any) -> Any:
        lower = F.linalg.potrf(F.linalg.syrk(x, transpose=True))
        return F.linalg.trsm(lower, x, rightside=True, transpose=True), F.transpose(lower)

    return qr


def lq_by_potrf(F: Any) -> Any:
    def lq(x: Any) -> Any:
        lower = F.linalg.potrf(F.linalg.syrk(x))
        return lower, F.linalg.trsm(lower, x)

    return lq


# Convolution and pooling


def taps(F: Any, x: Any, side: int, stride: int = 1) -> list[Any]:
    """For each place in a kernel, the elements of images that it meets."""
    ends = [*range(1 - side, 0), None]
    return [
        F.slice(x, begin=(None, None, *at), end=(None, None, *to), step=(1, 1, stride, stride))
        for at, to in zip(product(range(side), repeat=2), product(ends, repeat=2), strict=True)
    ]


def maxima_of_slices(side: int) -> Laid:
    return Laid(
        lambda F: lambda x: reduce(F.broadcast_maximum, taps(F, x, side, 2)), CHANNELS_FIRST
    )


def convolution_by_im2col(F: Any, window: Any) -> Any:
    """A product for each image; a part of the image tells the extents of the result."""
    cut = [window.dilation * (k - 1) - 2 * window.padding for k in window.kernel]
    part = {
        "begin": (None,) * 4,
        "end": (None, None, *(-n or None for n in cut)),
        "step": (1, 1, window.stride, window.stride),
    }
    options = {
        "kernel": window.kernel,
        "stride": (window.stride,) * 2,
        "dilate": (window.dilation,) * 2,
        "pad": (window.padding,) * 2,
    }

    def convolution(x: Any, w: Any) -> Any:
        columns = F.im2col(x, **options)
        kernels = F.expand_dims(F.reshape(w, shape=(0, -1)), axis=0)
        kernels = F.broadcast_like(kernels, columns, lhs_axes=(0,), rhs_axes=(0,))
        at = {"lhs_begin": 2, "lhs_end": 3, "rhs_begin": 2, "rhs_end": 4}
        return F.reshape_like(F.batch_dot(kernels, columns), F.slice(x, **part), **at)

    return convolution


def convolution_by_group(F: Any, window: Any) -> Any:
    groups = window.groups
    convolve = kernels.convolution(F, replace(window, groups=1, filters=window.filters // groups))

    def convolution(x: Any, w: Any) -> Any:
        images = F.split(x, num_outputs=groups, axis=1)
        filters = F.split(w, num_outputs=groups, axis=0)
        return F.concat(*map(convolve, images, filters), dim=1)

    return convolution


def depthwise_by_slices(F: Any, _: Any) -> Any:
    def convolution(x: Any, w: Any) -> Any:
        padded = F.pad(x, mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1))
        factors = F.split(F.reshape(w, shape=(0, -1)), num_outputs=9, axis=1)
        images = zip(taps(F, padded, 3), factors, strict=True)
        return F.add_n(*(F.broadcast_mul(y, F.reshape(v, (1, -1, 1, 1))) for y, v in images))

    return convolution


def transposed_by_col2im(F: Any, window: Any) -> Any:
    options = {"kernel": window.kernel, "stride": (window.stride,) * 2}

    def convolution(x: Any, w: Any) -> Any:
        n, c, *extents = x.shape
        size = [window.transposed_extent(extent, i) for i, extent in enumerate(extents)]
        kernels = F.broadcast_axis(w.reshape((1, c, -1)), axis=0, size=n)
        columns = F.batch_dot(kernels, x.reshape((0, 0, -1)), transpose_a=True)
        return F.col2im(columns, output_size=size, pad=(window.padding,) * 2, **options)

    return convolution


#: The depth before the channels, of images and of kernels.
_DEPTH_FIRST = axes("ndhwc->ndchw", "dhwio->odihw", results=["ndhwc->ndchw"])


def convolution_of_slices(F: Any, window: Any) -> Any:
    """A convolution of images that have the channels of three slices."""
    convolve = kernels.convolution(F, replace(window, kernel=window.kernel[1:]))

    def convolution(x: Any, w: Any) -> Any:
        edge = F.zeros_like(F.slice_axis(x, axis=1, begin=0, end=1))
        padded = F.concat(edge, x, edge, dim=1)
        parts = [F.slice_axis(padded, axis=1, begin=i, end=i - 2 or None) for i in range(3)]
        y = convolve(F.concat(*parts, dim=2).reshape((-3, 0, 0, 0)), w.reshape((0, -3, 0, 0)))
        return F.reshape_like(y, x, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)

    return convolution


def pooled_last(kind: str, extent: int) -> Implementation:
    """Pooling with the channels last."""
    options: dict[str, Any] = {"pool_type": kind, "kernel": (extent,) * 2, "stride": (2, 2)}
    return Call("Pooling", **options, layout="NHWC")


def pooled_by_reduction(name: str) -> Laid:
    """Windows of two by two as two axes."""

    def pool(F: Any) -> Any:
        reduced = partial(getattr(F, name), axis=(3, 5))
        return lambda x: reduced(x.reshape((0, 0, -4, -1, 2, -4, -1, 2)))

    return Laid(pool, CHANNELS_FIRST)


# Normalisation


def batch_norm_of_parts(F: Any) -> Any:
    def batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
        over = {"axis": (0, 2, 3), "keepdims": True}
        deviation = F.broadcast_sub(x, F.mean(x, **over))
        root = F.rsqrt(F.mean(F.square(deviation), **over) + BATCH_EPSILON)
        factor = root * F.reshape(gamma, shape=(1, -1, 1, 1))
        offset = F.reshape(beta, shape=(1, -1, 1, 1))
        return F.broadcast_add(F.broadcast_mul(deviation, factor), offset)

    return batch_norm


#: Batch normalisation with the channels last.
_VECTORS_LAST = Layout(
    place=lambda arrays: [*arrays, np.zeros_like(arrays[1]), np.ones_like(arrays[1])],
    restore=lambda arrays: [*arrays[:3]],
)


def standard_rows(F: Any, groups: int) -> Any:
    """LayerNorm of groups of channels of images.

    Args:
        groups: number of them; 0 for each channel.
    """

    def standard(x: Any) -> Any:
        rows = F.reshape(x, shape=(0, groups, -1))
        row = first_row(F, F.reshape(rows, shape=(-3, 0))).reshape((-1,))
        normalised = F.LayerNorm(rows, F.ones_like(row), F.zeros_like(row), eps=EPSILON)
        return F.reshape_like(normalised, x)

    return standard


def scaled(standard: Callable[[Any], Any]) -> Any:
    """Factors and offsets by a batch normalisation with the mean 0 and the variance 1."""

    def norm(F: Any) -> Any:
        scale = partial(F.BatchNorm, use_global_stats=True, fix_gamma=False, eps=1e-12)
        return lambda x, *vectors: scale(standard(F)(x), *vectors)

    return norm


def group_norm_by_instance(F: Any) -> Any:
    def group_norm(x: Any, gamma: Any, beta: Any, zeros: Any, ones: Any) -> Any:
        parts = F.reshape(x, shape=(0, GROUPS, -1))
        standard = F.reshape_like(F.InstanceNorm(parts, ones, zeros, eps=EPSILON), x)
        return F.broadcast_add(F.broadcast_mul(standard, gamma), beta)

    return group_norm


def group_norm_factors_first(F: Any) -> Any:
    def group_norm(x: Any, gamma: Any, beta: Any, *_: Any) -> Any:
        rows = F.reshape(x, shape=(0, GROUPS, -1))
        mean = F.mean(rows, axis=2, keepdims=True)
        variance = F.mean(F.square(F.broadcast_sub(rows, mean)), axis=2, keepdims=True)
        factor = F.broadcast_mul(F.rsqrt(variance + EPSILON), gamma.reshape((1, GROUPS, -1)))
        offset = F.broadcast_sub(beta.reshape((1, GROUPS, -1)), F.broadcast_mul(mean, factor))
        factor, offset = (y.reshape((0, -1, 1, 1)) for y in (factor, offset))
        return F.broadcast_add(F.broadcast_mul(x, factor), offset)

    return group_norm


def lrn_by_pooling(F: Any) -> Any:
    """A mean of the nearest channels by a pooling along the channels."""
    side = NEIGHBOURS // 2
    pool = partial(F.Pooling, kernel=(NEIGHBOURS, 1), pad=(side, 0), pool_type="avg")

    def lrn(x: Any) -> Any:
        squares = F.square(x).reshape((0, -4, 1, -1, -3))
        total = BIAS + ALPHA * NEIGHBOURS * F.reshape_like(pool(squares), x)
        return x * F.rsqrt(total) * F.rsqrt(F.sqrt(total))

    return lrn


# Recurrent layers


def cells(
    name: str, states: int = 1, biases: int = 1, order: Callable[..., Any] = np.asarray
) -> Table:
    """Gluon's cell step by step, which its ``unroll`` does in a loop of Python's."""
    orders = axes("ntc->tnc", "ig->gi", "ig->gi", results=["ntc->tnc"])

    def place(arrays: Arrays) -> list[NDArray[Any]]:
        x, w, u, *vectors = orders.place([arrays[0], *map(order, arrays[1:])])
        vectors = [*vectors, np.zeros_like(vectors[0])][:2]
        return [x, w, u, *vectors, *[np.zeros_like(x[0])] * states]

    def restore(arrays: Arrays) -> list[NDArray[Any]]:
        x, *weights = orders.restore(arrays[: 3 + biases])
        return [x, *map(order, weights)]

    def by_step(F: Any, units: int) -> Any:
        import mxnet as mx  # not above: fwbench's adapter prepares NumPy first

        step = getattr(mx.gluon.rnn, name)(units).hybrid_forward

        def layer(x: Any, *arrays: Any) -> Any:
            weights, first = arrays[:4], [*arrays[4:]]
            return F.contrib.foreach(lambda now, before: step(F, now, before, *weights), x, first)[
                0
            ]

        return layer

    layout = Layout(place, restore, orders.place_results, orders.restore_results)
    return {f"{name}, foreach": Laid(by_step, layout)}


def masked_lstm(F: Any, units: int, _: int, loop: str) -> Any:  # noqa: ARG001 (a toggle)
    """The layer of all steps; what is behind the end of a sequence is masked."""
    layer = partial(F.RNN, state_size=units, num_layers=1, mode="lstm")

    def call(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
        weights = [F.reshape(F.transpose(y), shape=(-1,)) for y in (w, u)]
        x = F.swapaxes(x, dim1=0, dim2=1)
        zeros = F.zeros_like(first_row(F, x))
        y = layer(x, F.concat(*weights, b, F.zeros_like(b), dim=0), zeros, zeros)
        masked = F.SequenceMask(y, lengths, use_sequence_length=True)
        last = F.SequenceLast(y, lengths, use_sequence_length=True)
        return F.swapaxes(masked, dim1=0, dim2=1), last

    return call


# Attention


def _later(F: Any, positions: Any) -> Any:
    """1 for every pair of a position and a later one, as an array of three axes."""
    at = F.contrib.arange_like(positions, axis=1)
    return F.broadcast_lesser(at.reshape((1, -1, 1)), at.reshape((1, 1, -1)))


def causal_by_batch_dot(F: Any) -> Any:
    def attend(*projections: Any) -> Any:
        q, k, v = (x.reshape((-3, 0, 0)) for x in projections)
        scores = F.batch_dot(F.contrib.div_sqrt_dim(q), k, transpose_b=True)
        weights = F.softmax(F.broadcast_add(scores, -1e9 * _later(F, q)))
        return F.reshape_like(F.batch_dot(weights, v), projections[0])

    return attend


def causal_by_lengths(F: Any) -> Any:
    """A softmax of so many scores of each row."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = F.linalg.gemm2(F.contrib.div_sqrt_dim(q), k, transpose_b=True)
        lengths = F.cast(F.contrib.arange_like(q, axis=2) + 1, dtype="int32").reshape((1, 1, -1))
        like = F.sum(q, axis=3)
        lengths = F.broadcast_like(lengths, F.BlockGrad(like))
        return F.linalg.gemm2(F.softmax(scores, lengths, use_length=True, axis=-1), v)

    return attend


#: Queries, keys and values of each head in one array, positions first; and an array that has batch
#: and heads for its axes.
_INTERLEAVED = Layout(
    place=lambda arrays: [
        np.concatenate([x.reshape(-1, *x.shape[2:]) for x in arrays], 2).swapaxes(0, 1).copy(),
        np.zeros(arrays[0].shape[:2], np.int32),
    ],
    restore=lambda arrays: np.split(
        arrays[0].swapaxes(0, 1).reshape(*arrays[1].shape, len(arrays[0]), -1), 3, axis=3
    ),
    place_results=axes("bhtd->tbhd").place,
    restore_results=axes("bhtd->tbhd").restore,
)


def interleaved(*, causal: bool) -> Laid:
    """GluonNLP's, with all heads of the batch as sequences of one head."""

    def attention(F: Any) -> Any:
        def attend(projections: Any, heads: Any) -> Any:
            scores = F.contrib.interleaved_matmul_selfatt_qk(projections, heads=1)
            if causal:
                scores = F.broadcast_add(scores, -1e9 * _later(F, scores))
            weights = F.softmax(scores)
            y = F.contrib.interleaved_matmul_selfatt_valatt(projections, weights, heads=1)
            return F.reshape_like(y, heads, lhs_begin=1, lhs_end=2, rhs_begin=0, rhs_end=2)

        return attend

    return Laid(attention, _INTERLEAVED)


# Indexing

#: Places in a table without rows, of some columns of each row.
_FLAT_OF_ROWS = Layout(
    place=lambda arrays: [
        arrays[0],
        arrays[1] + arrays[0].shape[1] * np.arange(len(arrays[1]))[:, None],
    ],
    restore=lambda arrays: [arrays[0], arrays[1] % arrays[0].shape[1]],
)

#: The same of rows and columns.
_FLAT = Layout(
    place=lambda arrays: [arrays[0], arrays[1] @ (arrays[0].shape[1], 1)],
    restore=lambda arrays: [arrays[0], np.stack(np.divmod(arrays[1], arrays[0].shape[1]), axis=1)],
)


def add_by_sparse(F: Any, n: int, _: int) -> Any:
    """A product with a sparse matrix that has a 1 in each row."""

    def added(x: Any, i: Any) -> Any:
        k = len(i)
        ones = F.sparse.csr_matrix((F.ones(k), i, F.arange(k + 1, dtype="int64")), shape=(k, n))
        return F.sparse.dot(ones, x, transpose_a=True)

    return added


def assigned_to_copy(_: Any) -> Any:
    def updated(x: Any, i: Any, rows: Any) -> Any:
        y = x.copy()
        y[i] = rows
        return y

    return updated


def flat_take(F: Any) -> Any:
    return lambda x, i: F.take(x.reshape((-1,)), i)


def take_and_pick(F: Any) -> Any:
    def gather(x: Any, places: Any) -> Any:
        rows, columns = F.split(places, num_outputs=2, axis=0, squeeze_axis=True)
        return F.pick(F.take(x, rows), columns)

    return gather


def one_hot_by_equality(F: Any, d: int) -> Any:
    def one_hot(i: Any) -> Any:
        classes = F.expand_dims(F.arange(d), axis=0)
        return F.broadcast_equal(F.expand_dims(F.cast(i, dtype="float32"), axis=1), classes)

    return one_hot


def rows_of_mask(F: Any) -> Any:
    return lambda x, mask: F.take(x, F.np.nonzero(mask.as_np_ndarray())[0].as_nd_ndarray())


# Sorting


def top_of_sorted(F: Any) -> Any:
    first = partial(F.slice_axis, axis=1, begin=0, end=5)

    def top(x: Any) -> Any:
        places = F.argsort(x, axis=1, is_ascend=False, dtype="int32")
        return [first(F.sort(x, axis=1, is_ascend=False)), first(places)]

    return top


def top_by_pick(F: Any) -> Any:
    def top(x: Any) -> Any:
        places = F.topk(x, k=5, axis=1, dtype="int32")
        columns = F.split(places, num_outputs=5, axis=1, squeeze_axis=True)
        return [F.stack(*(F.pick(x, column) for column in columns), axis=1), places]

    return top


def unique_by_sort(F: Any) -> Any:
    def unique(x: Any) -> Any:
        y = F.sort(x)
        changed = y[1:] != y[:-1]
        return F.contrib.boolean_mask(y, F.concat(F.ones_like(y[:1]), changed, dim=0))

    return unique


# Shapes and orders of elements


def permuted_by_pixel(F: Any) -> Any:
    def permuted(x: Any) -> Any:
        n, h, w, c = x.shape
        return F.transpose(x.reshape((n, h * w, c)), axes=(0, 2, 1)).reshape((n, c, h, w))

    return permuted


def zeros_around(F: Any) -> Any:
    def padded(x: Any) -> Any:
        row = F.zeros_like(F.slice_axis(x, axis=2, begin=0, end=1))
        y = F.concat(row, x, row, dim=2)
        columns = F.zeros_like(F.slice_axis(y, axis=3, begin=0, end=2))
        return F.concat(columns, y, columns, dim=3)

    return padded


def reflected_around(F: Any) -> Any:
    def at(x: Any, axis: int, *places: int) -> list[Any]:
        return [F.slice_axis(x, axis=axis, begin=i, end=i + 1) for i in places]

    def padded(x: Any) -> Any:
        y = F.concat(*at(x, 2, 1), x, *at(x, 2, -2), dim=2)
        return F.concat(*at(y, 3, 2, 1), y, *at(y, 3, -2, -3), dim=3)

    return padded


def blocks_of_stack(F: Any) -> Any:
    """Channels last: the two rows of blocks are slices."""

    def enlarged(x: Any) -> Any:
        parts = x.reshape((0, 0, 0, -4, 2, -1))
        rows = [F.slice_axis(parts, axis=3, begin=i, end=i + 1) for i in range(2)]
        stacked = F.stack(*(row.reshape((0, 0, -3, 0)) for row in rows), axis=2)
        return stacked.reshape((0, -3, 0, -4, 2, -1)).reshape((0, 0, -3, 0))

    return enlarged


# Images


def between(F: Any, x: Any, axis: int) -> Any:
    """Twice as many pixels along an axis."""
    part = partial(F.slice_axis, axis=axis)
    before = F.concat(part(x, begin=0, end=1), part(x, begin=0, end=-1), dim=axis)
    after = F.concat(part(x, begin=1, end=None), part(x, begin=-1, end=None), dim=axis)
    near = 0.75 * x
    pairs = F.stack(near + 0.25 * before, near + 0.25 * after, axis=axis + 1)
    return pairs.reshape((*(0,) * axis, -3, *(0,) * (3 - axis)))


def nearest_by_broadcast(F: Any, *_: int) -> Any:
    def enlarged(x: Any) -> Any:
        pixels = x.reshape((0, 0, -4, -1, 1, -4, -1, 1))
        return F.broadcast_axis(pixels, axis=(3, 5), size=(2, 2)).reshape((0, 0, -3, -3))

    return enlarged


# Random numbers, optimisers


def uniform(F: Any, shape: Any, like: Any) -> Any:
    dtype = kernels.dtype_of(like)
    return F.np.random.uniform(size=shape, dtype=dtype).as_nd_ndarray()


def drawn_by_thresholds(F: Any, n: int) -> Any:
    def drawn(p: Any) -> Any:
        u = F.random_uniform(shape=(n,))
        thresholds = F.split(F.cumsum(p), num_outputs=4, axis=0)[:3]
        return F.cast(F.add_n(*(F.broadcast_greater(u, y) for y in thresholds)), dtype="int32")

    return drawn


def adamw_by_adam(F: Any) -> Any:
    def step(x: Any, g: Any, m: Any, v: Any) -> None:
        x *= 1.0 - RATE * DECAY
        F.adam_update(x, g, m, v, out=x, lr=RATE, wd=0.0, **kernels.ADAM)

    return step


def adamw_of_several(F: Any) -> Any:
    scale = F.ones((1,))
    rates: dict[str, Any] = {"lrs": [RATE], "etas": [1.0], "wds": [RATE * DECAY]}

    def step(x: Any, *others: Any) -> None:
        arrays = ([y] for y in (x, *others))
        F.contrib.multi_adamw_update(*arrays, scale, out=[x], **rates, **kernels.ADAM)

    return step


def adagrad_by_operators(F: Any) -> Any:
    def step(x: Any, g: Any, v: Any) -> None:
        F.elemwise_add(v, F.square(g), out=v)
        F.elemwise_sub(x, RATE * g * F.rsqrt(v), out=x)

    return step


_NP = kernels.NumPyCall

_VECTORS_OF_GROUPS = kernels.with_vectors((GROUPS, GROUPS), (1, -1, 1, 1))

_PADDING = (*((0, 0),) * 2, (1, 1), (2, 2))

_GLUON = "Gluon's layers call it"
_ND = "of the operators of mx.nd, which Gluon's blocks call, it is the one for this"
_BOOLEANS = "its results are booleans"
_COMPOSED = "composed: MXNet has no operator for it"
_TRAINER = "gluon.Trainer calls the optimizer, which calls the operator"
_SHORT = "faster in arrays of some thousand numbers alone, by microseconds"
_NAN = "what is not chosen counts where it is infinite or not a number"
_LOST = "is off, or overflows, where numbers are large"
_NOBODY = "nobody writes a sum so; float16 has no product"
_SIZES = "faster in some sizes alone, and slower in small ones"
_OPENCV = "image.resize is OpenCV's, for pictures in front of a network: it has no gradient"
_NUMBERS = "the others have 0 and 1 in place of booleans"
_POOLED = "nobody writes it so; the gradient by Pooling is wrong"
_PARTS = "moments are off where numbers are large; nobody writes a mean as a product"
_DENSE = (
    "users, and MXNet's benchmark (opperf), call dot; that of the layer Dense, measured as linear, "
    "is slower in small matrices and wants the number of columns, which no hybridized block knows"
)
_LAST = "with the channels last MXNet has no convolution on CPUs; Gluon's layers have them first"
_SQUARED = "it squares the condition of the matrix: as many digits again are lost"
_NOTATION = "the notation is what is measured; batch_gemm is the product without it"
_EACH = "tens of microseconds of Python in each call, which every user of the optimizer has"


def _nd(alternatives: Table, accepted: str = "") -> Idiom:
    return Idiom("the operator of mx.nd", _ND, alternatives, accepted)


def _composed(called: str, alternatives: Table, accepted: str = "") -> Idiom:
    return Idiom(called, _COMPOSED, alternatives, accepted)


def _step(optimizer: str, operator: Implementation) -> Idiom:
    return Idiom(f"mx.optimizer.{optimizer}", _TRAINER, {"the operator": operator}, _EACH)


def assigned(values: Any, dtype: str) -> Any:
    """An array that host data are assigned to."""
    result = mx.nd.empty(values.shape, dtype=dtype)
    result[:] = values
    return result


#: Other ways to make arrays of host data.
_CREATIONS: dict[str, Table] = {
    "from_numpy": {
        "from_numpy": lambda *_: lambda values: mx.nd.from_numpy(values, zero_copy=False),
        "np.array": lambda _, __, dtype: lambda values: mx.np.array(values, dtype=dtype),
        "empty": lambda _, __, dtype: partial(assigned, dtype=dtype),
    },
    "from_list": {
        "np.array": lambda _, __, dtype: lambda values: mx.np.array(values, dtype=dtype),
        "by NumPy": lambda _, __, dtype: (
            lambda values: mx.nd.from_numpy(np.array(values, dtype), zero_copy=True)
        ),
    },
}

IDIOMS: Idioms = {
    **creations(
        *("mx.nd.array", "MXNet's documentation", _CREATIONS),
        {"from_list": "the other shares memory with an array of NumPy's, which it came from"},
    ),
    # Activations
    **{
        name: Idiom(f'Activation("{name}")', _GLUON, {f"nd.{name}": name}, _SHORT)
        for name in ("sigmoid", "relu", "tanh", "softsign")
    },
    "softplus": Idiom("Activation", _GLUON, {"log1p": lambda F: lambda x: F.log1p(F.exp(x))}),
    "gelu": Idiom(
        "LeakyReLU", _GLUON, {"erf": lambda F: lambda x: 0.5 * x * (1 + F.erf(0.70710678 * x))}
    ),
    "gelu_tanh": _composed("by sigmoid", {"by tanh": lambda F: partial(gelu_by_tanh, F)}),
    "elu": Idiom("LeakyReLU", _GLUON, {"where": lambda F: lambda x: F.where(x > 0, x, F.expm1(x))}),
    "leaky_relu": Idiom(
        "LeakyReLU",
        _GLUON,
        {"maximum": lambda F: lambda x: F.broadcast_maximum(x, 0.25 * x)},
        _SHORT,
    ),
    "silu": _composed("Activation", {"nd.sigmoid": lambda F: lambda x: x * F.sigmoid(x)}, _SHORT),
    "hard_sigmoid": _nd({"clip": lambda F: lambda x: F.clip(x / 6 + 0.5, a_min=0, a_max=1)}),
    "log_sigmoid": _composed(
        "Activation of -x",
        {"log": lambda F: lambda x: F.log(F.Activation(x, act_type="sigmoid"))},
        "is minus infinity below -104",
    ),
    # Elementwise arithmetic
    **{
        name: _nd({f"np.{name}": _NP(name)})
        for name in (
            *("abs", "negative", "sign", "exp", "expm1", "log", "log1p", "sqrt", "square"),
            *("reciprocal", "sin", "cos", "arctan", "floor", "subtract", "multiply", "divide"),
            *("maximum", "minimum", "power"),
        )
    },
    "add": Idiom("x + y", "users write it so", {"add_n": "add_n"}, "a sum of two is x + y"),
    **{
        name: Idiom(f"np.{name}", _BOOLEANS, {"nd": f"broadcast_{name}"}, _SHORT)
        for name in ("greater", "equal")
    },
    "mod": _nd({"floor": lambda F: lambda x, y: x - F.floor(x / y) * y}, _LOST),
    "hypot": _nd({"sqrt": lambda F: lambda x, y: F.sqrt(F.square(x) + F.square(y))}, _LOST),
    "logical_and": Idiom(
        "np.bitwise_and",
        _BOOLEANS,
        {
            "product": Laid("elemwise_mul", kernels.as_numbers(2)),
            "nd": Laid("broadcast_logical_and", kernels.as_numbers(2)),
        },
        _NUMBERS,
    ),
    "where": _nd(
        {
            "products": Laid(lambda F: lambda c, x, y: c * (x - y) + y, kernels.as_numbers(1)),
            "np.where": _NP("where"),
        },
        _NAN,
    ),
    # Reductions
    **{
        name: _nd({f"np.{name}": _NP(name, axis=1)})
        for name in ("prod", "cumsum", "sort", "argsort")
    },
    "mean": _nd({"np.mean": _NP("mean", axis=1), "product": means_by_dot}, _NOBODY),
    "max": _nd({"np.max": _NP("max", axis=1), "Pooling": row_maxima_by_pooling}, _POOLED),
    "min": _nd(
        {
            "np.min": _NP("min", axis=1),
            "Pooling": lambda F: lambda x: -row_maxima_by_pooling(F)(-x),
        },
        _POOLED,
    ),
    "sum_rows": _nd({"product with ones": rows_by_dot}, _NOBODY),
    "variance": _composed(
        "two means",
        {
            "moments": lambda F: (
                lambda x: F.mean(F.square(x), axis=1) - F.square(F.mean(x, axis=1))
            ),
            "products": variance_by_dot,
        },
        _PARTS,
    ),
    "norm": Idiom(
        "dot",
        "gluon.utils.clip_global_norm calls it",
        {
            "nd.norm": "norm",
            "multi_sum_sq": lambda F: lambda x: F.sqrt(F.multi_sum_sq(x, num_arrays=1)),
        },
        _SHORT,
    ),
    "logsumexp": _composed("log_softmax", {"sum": lambda F: partial(log_of_sum, F)}),
    # Vectors and matrices
    **{
        name: _nd(
            {
                "linalg.gemm2": Call("linalg.gemm2", **transposed),
                "FullyConnected": partial(product_by_layer, **transposed),
            },
            _DENSE,
        )
        for name, transposed in (
            *(("gemm", {}), ("gemm_nn", {})),
            *(("gemm_tn", {"transpose_a": True}), ("gemm_nt", {"transpose_b": True})),
        )
    },
    "batch_gemm": _nd({"linalg.gemm2": "linalg.gemm2", "np.matmul": _NP("matmul")}),
    "einsum": Idiom(
        *("np.einsum", "mx.nd has none", {"batch_dot": Call("batch_dot", transpose_b=True)}),
        _NOTATION,
    ),
    "l2_normalize": _nd(
        {"norm": lambda F: lambda x: F.broadcast_div(x, F.norm(x, axis=1, keepdims=True))}
    ),
    # Softmax, losses and attention
    "softmax": _nd({"SoftmaxActivation": "SoftmaxActivation"}),
    "log_softmax": _nd({"log": lambda F: lambda x: F.log(F.softmax(x))}),
    "cross_entropy_sum": Idiom(
        "log_softmax, pick",
        _GLUON,
        {
            "softmax_cross_entropy": Laid(
                "softmax_cross_entropy", Layout(labels_in_dtype, labels_int64)
            )
        },
        _SHORT,
    ),
    "binary_cross_entropy": Idiom(
        *("four terms", _GLUON),
        {"softrelu": lambda F: lambda x, y: F.mean(F.Activation(x, act_type="softrelu") - x * y)},
        "keeps no digits of small losses of large numbers",
    ),
    "attention": _composed(
        "linalg.gemm2",
        {"batch_dot": attention_by_batch_dot, "interleaved_matmul": interleaved(causal=False)},
        "slower in eleven cells of twelve",
    ),
    # Indexing and random numbers
    "gather_rows": _nd(
        {"gather_nd": lambda F: lambda x, i: F.gather_nd(x, F.expand_dims(i, axis=0))}, _SHORT
    ),
    "embedding": Idiom("Embedding", _GLUON, {"take": lambda F, n, d: F.take}, _SHORT),
    "sequence_mask": _nd({"broadcast_lesser": masked_by_product}, _NAN),
    "random_exponential": _nd(
        {"np.random": lambda F, n: lambda _: F.np.random.exponential(0.5, (n,)).as_nd_ndarray()},
        "float32 alone",
    ),
    "random_normal": Idiom(
        "np.random.normal", "twice as fast", {"nd.random_normal": kernels.drawn("normal")}
    ),
    # Pooling
    "global_avg_pool": Idiom(
        "Pooling",
        _GLUON,
        {
            "AdaptiveAvgPooling2D": Laid(
                Call("contrib.AdaptiveAvgPooling2D", output_size=1), CHANNELS_FIRST
            )
        },
        "oneDNN lacks a fast gradient for images with 16 channels, and Gluon's layer calls it so",
    ),
    # Shapes and orders of elements
    "flip": _nd({"nd.flip": Call("flip", axis=1)}, _SHORT),
    "tile": Idiom("nd.concat", "ten times as fast", {"nd.tile": Call("tile", reps=(2, 3))}, _SHORT),
    "split": Idiom(
        "nd.slice_axis",
        "ten times as fast",
        {"nd.split": Call("split", num_outputs=4, axis=1)},
        "eager gradients by slices are added up one by one; all else is up to ten times as fast",
    ),
    "broadcast_to": _nd({"nd.broadcast_to": lambda F, n: Call("broadcast_to", shape=(n, n))(F)}),
    "tril": Idiom(
        "np.tril",
        "mx.nd has none",
        {"linalg": lambda F: lambda x: F.linalg.maketrian(F.linalg.extracttrian(x))},
    ),
    # Reductions, vectors and matrices that Gluon's layers do not call
    "multiply_add": Idiom(
        "x * y + z",
        "users write it so",
        {"elemwise_add": lambda F: lambda x, y, z: F.elemwise_add(F.elemwise_mul(x, y), z)},
    ),
    "sum_columns": _nd(
        {"product with ones": lambda F: lambda x: F.dot(F.ones_like(x[:, 0]), x)}, _NOBODY
    ),
    "gemv": _nd(
        {
            "np.dot": _NP("dot"),
            "linalg.gemm2": lambda F: (
                lambda a, x: F.reshape(F.linalg.gemm2(a, F.expand_dims(x, axis=1)), shape=(-1,))
            ),
            "FullyConnected": lambda F: (
                lambda a, x: F.FullyConnected(
                    a, x.reshape((1, -1)), num_hidden=1, no_bias=True
                ).reshape((-1,))
            ),
        },
        "users call dot; a layer of one unit takes up to three times as long in small matrices",
    ),
    "outer": Idiom(
        "np.outer",
        "mx.nd has none",
        {
            "broadcast_mul": lambda F: (
                lambda x, y: F.broadcast_mul(F.expand_dims(x, axis=1), F.expand_dims(y, axis=0))
            ),
            "dot": lambda F: lambda x, y: F.dot(F.expand_dims(x, axis=1), F.expand_dims(y, axis=0)),
        },
    ),
    "tensordot": Idiom(
        "np.tensordot",
        "mx.nd has none",
        {
            "dot": lambda F: (
                lambda x, y: F.dot(F.reshape(x, shape=(0, -1)), F.reshape(y, shape=(-3, 0)))
            )
        },
    ),
    "linear": Idiom(
        "FullyConnected",
        _GLUON,
        {"dot": lambda F, n: lambda x, w, b: F.broadcast_add(F.dot(x, w, transpose_b=True), b)},
    ),
    # Convolution, pooling and normalisation
    **{
        name: Idiom("Convolution", _GLUON, {"im2col": Laid(convolution_by_im2col, CONV2D)})
        for name in ("conv2d", "conv2d_3x3", "conv2d_7x7_s2", "conv2d_dilated")
    },
    "conv2d_1x1": Idiom(
        "Convolution",
        _GLUON,
        {
            "dot, channels last": lambda F, window: (
                lambda x, w: F.dot(x, F.reshape(w, shape=(-1, window.filters)))
            ),
            "FullyConnected, channels last": Laid(
                lambda F, window: (
                    lambda x, w: F.FullyConnected(
                        x, w, num_hidden=window.filters, no_bias=True, flatten=False
                    )
                ),
                Layout(
                    lambda arrays: [arrays[0], arrays[1][0, 0].T.copy()],
                    lambda arrays: [arrays[0], arrays[1].T[None, None]],
                ),
            ),
            "im2col": Laid(convolution_by_im2col, CONV2D),
        },
        _LAST,
    ),
    "conv2d_grouped": Idiom(
        "Convolution", _GLUON, {"by group": Laid(convolution_by_group, CONV2D)}
    ),
    "depthwise_conv2d": Idiom("Convolution", _GLUON, {"slices": Laid(depthwise_by_slices, CONV2D)}),
    "conv2d_transposed": Idiom(
        "Deconvolution", _GLUON, {"col2im": Laid(transposed_by_col2im, CONV2D_TRANSPOSED)}
    ),
    "conv3d": Idiom(
        "Convolution", _GLUON, {"of images": Laid(convolution_of_slices, _DEPTH_FIRST)}
    ),
    "max_pool2d": Idiom(
        "Pooling",
        _GLUON,
        {
            "slices": maxima_of_slices(2),
            "max": pooled_by_reduction("max"),
            "channels last": pooled_last("max", 2),
        },
        _LAST,
    ),
    "max_pool2d_3x3_s2": Idiom(
        "Pooling",
        _GLUON,
        {"slices": maxima_of_slices(3), "channels last": pooled_last("max", 3)},
        _LAST,
    ),
    "avg_pool2d": Idiom(
        "Pooling",
        _GLUON,
        {
            "slices": Laid(lambda F: lambda x: 0.25 * F.add_n(*taps(F, x, 2, 2)), CHANNELS_FIRST),
            "mean": pooled_by_reduction("mean"),
            "channels last": pooled_last("avg", 2),
        },
        _LAST,
    ),
    "batch_norm_training": Idiom(
        "BatchNorm",
        _GLUON,
        {
            "parts": Laid(batch_norm_of_parts, CHANNELS_FIRST),
            "channels last": Laid(
                Call("BatchNorm", axis=3, eps=BATCH_EPSILON, momentum=1.0, fix_gamma=False),
                _VECTORS_LAST,
            ),
        },
    ),
    "group_norm": _composed(
        "GroupNorm",
        {
            "InstanceNorm": Laid(group_norm_by_instance, _VECTORS_OF_GROUPS),
            "factors first": Laid(group_norm_factors_first, _VECTORS_OF_GROUPS),
            "LayerNorm, BatchNorm": Laid(
                scaled(lambda F: standard_rows(F, GROUPS)), kernels.with_vectors((None, None))
            ),
        },
        "what Gluon's GroupNorm calls; the others take up to three times as long in small images",
    ),
    "conv1d": Idiom("Convolution", _GLUON, {"of images": Laid(convolution_as_images, CONV1D)}),
    "max_pool1d": Idiom(
        "Pooling", _GLUON, {"of images": Laid(pooling_as_images, SEQUENCE_CHANNELS_FIRST)}
    ),
    "batch_norm_inference": Idiom(
        "BatchNorm", _GLUON, {"factors first": Laid(factors_first, CHANNELS_FIRST)}
    ),
    "layer_norm": Idiom("LayerNorm", _GLUON, {"parts": layer_norm_of_parts}),
    "rms_norm": _composed(
        "mean",
        {"L2Normalization": rms_norm_by_l2},
        "its epsilon is in a sum over the channels, whose number a symbol does not know",
    ),
    "mse": Idiom(
        "x - y",
        _GLUON,
        {
            "elemwise_sub": lambda F: lambda x, y: F.mean(F.square(F.elemwise_sub(x, y))),
            "dot": mean_square_by_dot,
        },
        _NOBODY,
    ),
    "pick": _nd({"batch_take": lambda F: lambda x, i: F.batch_take(x, F.cast(i, dtype="int32"))}),
    # Optimisers
    "sgd": _step("SGD", kernels.operator("sgd_update")),
    "momentum": _step(
        "SGD", Laid(kernels.operator("sgd_mom_update", momentum=MOMENTUM), kernels.VELOCITY)
    ),
    "nesterov": _step(
        "NAG", Laid(kernels.operator("nag_mom_update", momentum=MOMENTUM), kernels.VELOCITY)
    ),
    "adam": _step("Adam", kernels.operator("adam_update", **kernels.ADAM)),
    "rmsprop": _step("RMSProp", kernels.operator("rmsprop_update", gamma1=RHO, epsilon=TINY)),
    "ftrl": _step("Ftrl", kernels.operator("ftrl_update", lamda1=L1, beta=0.0)),
    # Arrays that are not made of host data
    "zeros_like": _nd(
        {
            "np.zeros_like": _NP("zeros_like"),
            "nd.zeros": lambda F: lambda x: F.zeros(x.shape, dtype=x.dtype),
        }
    ),
    "arange": _nd(
        {
            "np.arange": lambda F, n: lambda _: F.np.arange(n, dtype="int32").as_nd_ndarray(),
            "np.linspace": lambda F, n: (
                lambda _: F.np.linspace(0, n - 1, n, dtype="int32").as_nd_ndarray()
            ),
        }
    ),
    # Activations and elementwise arithmetic with parameters or other results
    "selu": Idiom(
        *("elu", "fourteen times as fast as the operator, whose gradient is wrong"),
        {"selu": Call("LeakyReLU", act_type="selu")},
        _SHORT,
    ),
    "rsqrt": _nd(
        {"1 / sqrt": lambda F: lambda x: 1 / F.sqrt(x), "power": lambda F: lambda x: x**-0.5},
        "two operators; faster in eager gradients of a million numbers alone",
    ),
    "lgamma": _nd({"log of gamma": lambda F: lambda x: F.log(F.gamma(x))}),
    "clip": Idiom(
        "maximum, minimum",
        "six times as fast",
        {
            "nd.clip": Call("clip", a_min=-0.5, a_max=0.5),
            "hard_sigmoid": lambda F: lambda x: F.hard_sigmoid(x, alpha=1.0, beta=0.5) - 0.5,
        },
        _SHORT,
    ),
    "round": _nd(
        {
            "rint": "rint",
            "floor": lambda F: lambda x: F.floor(x + 0.5),
            "np.around": kernels.around,
        },
        "rounds halves away from zero, which x + 1/2 does not below zero",
    ),
    "round_half_even": Idiom(
        "np.around",
        "those of mx.nd round halves otherwise",
        {"sum and difference": lambda F: lambda x: (x + 12582912.0) - 12582912.0},
        "the sum is wrong for numbers above four million, and in other dtypes",
    ),
    "isnan": Idiom(
        "np.isnan",
        _BOOLEANS,
        {"not_equal": lambda F: lambda x: F.broadcast_not_equal(x, x)},
        _SHORT,
    ),
    "logical_not": Idiom(
        "np.logical_not",
        _BOOLEANS,
        {
            "nd.logical_not": Laid("logical_not", kernels.as_numbers(1)),
            "1 - x": Laid(lambda F: lambda x: 1 - x, kernels.as_numbers(1)),
        },
        _SHORT,
    ),
    "cast_float16": _nd(
        {
            "astype": lambda F: lambda x: x.astype("float16"),
            "amp_cast": Call("amp_cast", dtype="float16"),
        }
    ),
    "cast_int32": _nd({"astype": lambda F: lambda x: x.astype("int32")}),
    "arctan2": Idiom(
        *("np.arctan2", "mx.nd has none", {"arctan": arctan_of_quotient}),
        "the quotient is not a number where both are 0",
    ),
    "add_row": _nd(
        {
            "np.add": _NP("add"),
            "linalg.gemm": Laid(row_by_gemm, kernels.AS_ROW),
            "broadcast_axis": Laid(
                lambda F: lambda x, row: x + F.broadcast_axis(row, axis=0, size=x.shape[0]),
                kernels.AS_ROW,
            ),
        },
        _NOBODY,
    ),
    # Reductions
    "sum": _nd({"product with ones": lambda F: lambda x: F.sum(rows_by_dot(F)(x))}, _NOBODY),
    "std": _composed(
        "two means",
        {
            "products": lambda F: lambda x: F.sqrt(variance_by_dot(F)(x)),
            "moments": lambda F: (
                lambda x: F.sqrt(F.mean(F.square(x), axis=1) - F.square(F.mean(x, axis=1)))
            ),
        },
        _PARTS,
    ),
    "any": Idiom(
        "np.any",
        "mx.nd has none",
        {
            "max": Laid(Call("max", axis=1), kernels.as_numbers(1)),
            "product with ones": Laid(
                lambda F: lambda x: rows_by_dot(F)(x) != 0, kernels.as_numbers(1)
            ),
        },
        _NUMBERS,
    ),
    "argmax": Idiom(
        "np.argmax",
        "that of mx.nd gives numbers in the dtype of the operand",
        {
            "nd.argmax": lambda F: lambda x: F.cast(F.argmax(x, axis=1), dtype="int64"),
            "argmax_channel": lambda F: lambda x: F.cast(F.argmax_channel(x), dtype="int64"),
            "topk": lambda F: lambda x: F.reshape(F.topk(x, axis=1, dtype="int32"), shape=(-1,)),
        },
        "which of several largest numbers topk finds is undefined",
    ),
    "argmin": Idiom(
        "np.argmin",
        "that of mx.nd gives numbers in the dtype of the operand",
        {
            "nd.argmin": lambda F: lambda x: F.cast(F.argmin(x, axis=1), dtype="int64"),
            "argmax": lambda F: lambda x: F.np.argmax((-x).as_np_ndarray(), axis=1).as_nd_ndarray(),
        },
    ),
    # Vectors, matrices and decompositions
    "dot": _nd(
        {
            "linalg.gemm2": lambda F: (
                lambda x, y: F.linalg.gemm2(
                    x.reshape((1, -1)), y.reshape((1, -1)), transpose_b=True
                ).reshape((-1,))
            ),
            "FullyConnected": lambda F: (
                lambda x, y: F.FullyConnected(
                    x.reshape((1, -1)), y.reshape((1, -1)), num_hidden=1, no_bias=True
                ).reshape((-1,))
            ),
            "sum of products": lambda F: lambda x, y: F.sum(x * y),
        }
    ),
    "flatten": _nd(
        {"x.reshape": lambda F: lambda x: x.reshape((-1,))},
        "in eager execution it is a view, which costs nothing",
    ),
    "solve": Idiom(
        "np.linalg.solve",
        "mx.nd has none",
        {
            "inverse": lambda F: lambda a, b: F.dot(F.linalg.inverse(a), b),
            "gelqf, trsm": solved_by_lq,
        },
    ),
    "triangular_solve": _nd(
        {
            "inverse": lambda F: lambda a, b: F.dot(F.linalg.inverse(a), b),
            "np.linalg.solve": _NP("linalg.solve"),
        }
    ),
    "svd_values": Idiom(
        *("np.linalg.svd", "mx.nd has none", {"linalg.syevd": singular_values_by_syevd}), _SQUARED
    ),
    "qr": _nd({"linalg.potrf": qr_by_potrf}, _SQUARED),
    "lq": _nd({"linalg.potrf": lq_by_potrf}, _SQUARED),
    "eigh": _nd({"np.linalg.eigh": _NP("linalg.eigh")}),
    "inverse": _nd(
        {
            "np.linalg.inv": _NP("linalg.inv"),
            "np.linalg.solve": lambda F: (
                lambda x: F.np.linalg.solve(x.as_np_ndarray(), F.np.eye(len(x))).as_nd_ndarray()
            ),
        }
    ),
    "slogdet": _nd(
        {"log of det": lambda F: lambda x: F.log(F.abs(F.linalg.det(x)))},
        "the determinant of a large matrix overflows",
    ),
    # Normalisation
    "instance_norm": Idiom(
        "InstanceNorm",
        _GLUON,
        {
            "GroupNorm": Laid(
                lambda F: (
                    lambda x, *vectors: F.GroupNorm(x, *vectors, num_groups=x.shape[1], eps=EPSILON)
                ),
                CHANNELS_FIRST,
            ),
            "LayerNorm, BatchNorm": Laid(
                scaled(lambda F: standard_rows(F, 0)), kernels.with_vectors((None, None))
            ),
        },
        "Gluon's InstanceNorm calls it; the others are operators of other layers",
    ),
    "lrn": _nd({"Pooling": Laid(lrn_by_pooling, CHANNELS_FIRST)}),
    # Losses and attention
    "cross_entropy": Idiom(
        "log_softmax, pick",
        _GLUON,
        {
            "softmax, pick": lambda F: lambda x, i: -F.mean(F.log(F.pick(F.softmax(x), i))),
            "softmax_cross_entropy": Laid(
                lambda F: lambda x, i: F.softmax_cross_entropy(x, i) / len(i),
                Layout(labels_in_dtype, labels_int64),
            ),
        },
        _SHORT,
    ),
    "huber": Idiom(
        "smooth_l1", "the operator for it", {"where": huber_by_where, "clip": huber_by_clip}
    ),
    "attention_causal": _composed(
        "linalg.gemm2",
        {
            "batch_dot": causal_by_batch_dot,
            "softmax of lengths": causal_by_lengths,
            "interleaved_matmul": interleaved(causal=True),
        },
        "slower in most cells, and of projections that are one array",
    ),
    # Recurrent layers
    "rnn": Idiom("RNN", _GLUON, cells("RNNCell")),
    "lstm": Idiom("RNN", _GLUON, cells("LSTMCell", states=2)),
    "gru": Idiom("RNN", _GLUON, cells("GRUCell", biases=2, order=reset_first)),
    "dynamic_rnn": _composed(
        "contrib.foreach", {"RNN": masked_lstm}, "the loop is what is measured"
    ),
    # Indexing that Gluon's layers do not call
    "gather_elements": _nd(
        {"take": Laid(flat_take, _FLAT_OF_ROWS)},
        "gather_nd is the operator for it; take wants places in the whole table",
    ),
    "gather_nd": _nd(
        {"take": Laid(flat_take, _FLAT), "take, pick": Laid(take_and_pick, axes("", "kc->ck"))}
    ),
    "scatter_add": Idiom(
        "the gradient of gather_nd",
        "there is none that adds up",
        {
            "one_hot": lambda F, n, _: (
                lambda x, i: F.dot(F.one_hot(i, depth=n), x, transpose_a=True)
            ),
            "sparse": add_by_sparse,
        },
        "the sparse product takes up to five times as long in small tables, and is not in blocks",
    ),
    "scatter_nd_update": _nd({"y[i] = rows": assigned_to_copy}),
    "one_hot": _nd(
        {
            "broadcast_equal": one_hot_by_equality,
            "Embedding": lambda F, d: lambda i: F.Embedding(i, F.eye(d), input_dim=d, output_dim=d),
        }
    ),
    "boolean_mask": _nd({"nonzero, take": Laid(rows_of_mask, kernels.MASK)}),
    # Sorting
    "top_k": _nd({"sort, argsort": top_of_sorted, "topk, pick": top_by_pick}),
    "unique": Idiom("np.unique", "mx.nd has none", {"sort, boolean_mask": unique_by_sort}, _SIZES),
    # Shapes
    "transpose": _nd(
        {"swapaxes": Call("swapaxes", dim1=0, dim2=1), "np.transpose": _NP("transpose")}
    ),
    "permute_nhwc_nchw": _nd(
        {
            "swapaxes": lambda F: (
                lambda x: F.swapaxes(F.swapaxes(x, dim1=1, dim2=3), dim1=2, dim2=3)
            ),
            "pixels in a row": permuted_by_pixel,
        }
    ),
    "concat": _nd(
        {
            "np.concatenate": lambda F: (
                lambda *pair: F.np.concatenate(
                    [x.as_np_ndarray() for x in pair], axis=1
                ).as_nd_ndarray()
            ),
            "stack": lambda F: lambda x, y: F.stack(x, y, axis=1).reshape((0, -3)),
        }
    ),
    "stack": _nd(
        {
            "np.stack": lambda F: (
                lambda *pair: F.np.stack([x.as_np_ndarray() for x in pair], axis=1).as_nd_ndarray()
            ),
            "concat": lambda F: lambda x, y: F.concat(x, y, dim=1).reshape((0, -4, 2, -1)),
        }
    ),
    "pad_constant": _nd(
        {
            "np.pad": Laid(_NP("pad", pad_width=_PADDING), CHANNELS_FIRST),
            "concat": Laid(zeros_around, CHANNELS_FIRST),
        }
    ),
    "pad_reflect": _nd(
        {
            "np.pad": Laid(_NP("pad", pad_width=_PADDING, mode="reflect"), CHANNELS_FIRST),
            "concat": Laid(reflected_around, CHANNELS_FIRST),
        }
    ),
    "repeat": _nd(
        {
            "stack": lambda F: lambda x: F.stack(x, x, x, axis=2).reshape((0, -3)),
            "broadcast_axis": lambda F: (
                lambda x: F.broadcast_axis(x.reshape((0, 0, 1)), axis=2, size=3).reshape((0, -3))
            ),
        }
    ),
    "slice": _nd(
        {
            "slice_axis": lambda F, begin, end: (
                lambda x: F.slice_axis(
                    F.slice_axis(x, axis=0, begin=begin, end=end), axis=1, begin=begin, end=end
                )
            ),
            "x[i:j]": lambda F, begin, end: (
                lambda x: F.slice_axis(x[begin:end], axis=1, begin=begin, end=end)
            ),
        }
    ),
    "strided_slice": _nd(
        {
            "rows, columns": lambda F: (
                lambda x: F.slice(
                    F.slice(x, begin=(None,), end=(None,), step=(2,)),
                    begin=(None, None),
                    end=(None, None),
                    step=(1, 3),
                )
            ),
            "take": lambda F: (
                lambda x: F.take(
                    F.take(x, F.arange(0, len(x), 2)), F.arange(0, x.shape[1], 3), axis=1
                )
            ),
        }
    ),
    "roll": _composed("two slices", {"np.roll": _NP("roll", shift=3, axis=1)}, _SHORT),
    "depth_to_space": Idiom(
        "PixelShuffle2D",
        _GLUON,
        {
            "nd.depth_to_space": Laid(Call("depth_to_space", block_size=2), CHANNELS_FIRST),
            "channels last": blocks_of_stack,
        },
        "MXNet's convolutions on CPUs have the channels first",
    ),
    "diag_part": _nd({"np.diagonal": _NP("diagonal"), "linalg.extractdiag": "linalg.extractdiag"}),
    # Images
    "resize_bilinear": Idiom(
        "contrib.BilinearResize2D",
        "the operator for it",
        {
            "slices": Laid(lambda F, *_: lambda x: between(F, between(F, x, 2), 3), CHANNELS_FIRST),
            "image.resize": lambda F, h, w: partial(F.image.resize, size=(w, h), interp=1),
        },
        _OPENCV,
    ),
    "resize_nearest": _nd(
        {
            "repeat": Laid(
                lambda F, *_: lambda x: F.repeat(F.repeat(x, repeats=2, axis=2), repeats=2, axis=3),
                CHANNELS_FIRST,
            ),
            "broadcast_axis": Laid(nearest_by_broadcast, CHANNELS_FIRST),
            "image.resize": lambda F, h, w: partial(F.image.resize, size=(w, h), interp=0),
        },
        _OPENCV,
    ),
    "im2col": _nd(
        {"slices": Laid(lambda F, *_: lambda x: F.concat(*taps(F, x, 3), dim=1), CHANNELS_FIRST)},
        "slices are faster in large images alone, and with a gradient never",
    ),
    # Random numbers
    "random_uniform": _nd({"np.random": lambda F, n: lambda like: uniform(F, (n,), like)}, _SIZES),
    "random_bernoulli": _composed(
        "random_uniform",
        {
            "np.random": lambda F: lambda p: uniform(F, p.shape, p) < p,
            "npx.random": lambda F: (
                lambda p: F.npx.random.bernoulli(
                    p.as_np_ndarray(), None, None, kernels.dtype_of(p), None, None
                ).as_nd_ndarray()
            ),
        },
        _SIZES,
    ),
    "random_integers": _nd(
        {
            "uniform": lambda F, n: (
                lambda _: F.cast(F.random_uniform(0, 100, shape=(n,)), dtype="int32")
            ),
            "np.random": lambda F, n: (
                lambda _: F.cast(
                    F.np.random.uniform(0, 100, size=(n,)).as_nd_ndarray(), dtype="int32"
                )
            ),
        },
        _SIZES,
    ),
    "random_gamma": _nd(
        {
            "np.random": lambda F: (
                lambda alpha: F.np.random.gamma(alpha.as_np_ndarray()).as_nd_ndarray()
            )
        }
    ),
    "random_shuffle": _nd(
        {
            "take": lambda F: (
                lambda x: F.take(x, F.argsort(F.random_uniform(shape=x.shape), dtype="int32"))
            )
        }
    ),
    "random_categorical": _nd(
        {
            "np.random.choice": lambda F, n: (
                lambda p: F.np.random.choice(4, size=(n,), p=p.as_np_ndarray()).as_nd_ndarray()
            ),
            "thresholds": drawn_by_thresholds,
        },
        _SIZES,
    ),
    "dropout": Idiom(
        "Dropout",
        _GLUON,
        {
            "uniform_like": lambda F: lambda x: 2 * x * (F.random.uniform_like(x) < DROPPED),
            "np.random": lambda F: lambda x: 2 * x * (uniform(F, x.shape, x) < DROPPED),
        },
        "the others are formulas, which are slower outside of hybridized blocks",
    ),
    # Optimisers
    "adamw": Idiom(
        "contrib.adamw_update",
        "mx.optimizer has none",
        {"multi_adamw_update": adamw_of_several, "adam_update": adamw_by_adam},
        "the operator for it; adam_update and a product are two",
    ),
    "adagrad": Idiom(
        "mx.optimizer.AdaGrad",
        _TRAINER,
        {"operators": adagrad_by_operators},
        "more passes over memory, and Python in each call, which every user of the optimizer has",
    ),
}
