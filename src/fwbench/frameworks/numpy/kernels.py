"""NumPy's implementations of operations that are more than a path, by family."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.convolution import Window
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)

Array = NDArray[Any]

# Activations


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def softsign(x: Array) -> Array:
    return x / (1.0 + np.abs(x))


def selu(x: Array) -> Array:
    below = 1.0507009873554805 * 1.6732632423543772 * np.expm1(np.minimum(x, 0))
    return 1.0507009873554805 * np.maximum(x, 0) + below


# Elementwise arithmetic


def cast(dtype: str) -> Implementation:
    return lambda np: lambda x: x.astype(dtype)


# Reductions


def logsumexp(x: Array) -> Array:
    peaks = x.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(x - peaks).sum(axis=1)) + peaks[:, 0])


# Vectors and matrices


def l2_normalize(x: Array) -> Array:
    return x / np.sqrt(np.einsum("ij,ij->i", x, x))[:, None]


# Convolution, as a product of all windows with the kernel


def _padded(x: Array, window: Window) -> Array:
    if not window.padding:
        return x
    return np.pad(x, [(0, 0), *[(window.padding,) * 2] * window.rank, (0, 0)])


def windows(x: Array, window: Window) -> Array:
    """N H W C R S: a view of what each position of the kernel covers."""
    space = tuple(range(1, 1 + window.rank))
    reach = [window.dilation * (extent - 1) + 1 for extent in window.kernel]
    every = sliding_window_view(_padded(x, window), reach, axis=space)  # type: ignore[call-overload]
    strided = every[(slice(None), *[slice(None, None, window.stride)] * window.rank)]
    return strided[(..., *[slice(None, None, window.dilation)] * window.rank)]


def convolution(_: Any, window: Window) -> Any:
    """A product for each group, of copies of the windows with the channels last."""
    rank, groups = window.rank, window.groups

    def convolution(x: Array, w: Array) -> Array:
        views = windows(x, window)
        pixels, kernel = views.shape[: 1 + rank], views.shape[2 + rank :]
        parts = views.reshape(*pixels, groups, -1, *kernel)
        order = 1 + rank, *range(1 + rank), *range(3 + rank, parts.ndim), 2 + rank
        copied = np.ascontiguousarray(parts.transpose(order))
        rows = copied.reshape(groups, math.prod(pixels), -1)
        columns = w.reshape(rows.shape[-1], groups, -1).swapaxes(0, 1)
        return (rows @ columns).swapaxes(0, 1).reshape(*pixels, -1)

    return convolution


def depthwise_conv2d(_: Any, window: Window) -> Any:
    """The sum of products of shifted images, one after the other: they stay in the caches."""
    places = [*np.ndindex(*window.kernel)]

    def convolution(x: Array, w: Array) -> Array:
        result = np.zeros_like(x)
        product = np.empty_like(x[0])
        for image, y in zip(_padded(x, window), result, strict=True):
            for i, j in places:
                part = image[i : i + x.shape[1], j : j + x.shape[2]]
                np.add(y, np.multiply(part, w[i, j, 0], out=product), out=y)
        return result

    return convolution


def conv2d_transposed(_: Any, window: Window) -> Any:
    """Products with what each position of the kernel has, added where it puts them."""
    stride, edge = window.stride, window.padding

    def conv2d_transpose(x: Array, w: Array) -> Array:
        n, h, width, c = x.shape
        rows, columns = stride * (h - 1), stride * (width - 1)
        extents = rows + w.shape[0], columns + w.shape[1]
        y = np.zeros((n, *extents, w.shape[2]), x.dtype)
        pixels = x.reshape(-1, c)  # one product, not one for each row of an image
        for i, j in np.ndindex(*w.shape[:2]):
            product = (pixels @ w[i, j].T).reshape(n, h, width, -1)
            y[:, i : i + rows + 1 : stride, j : j + columns + 1 : stride] += product
        return y[:, edge : extents[0] - edge, edge : extents[1] - edge].copy()

    return conv2d_transpose


# Pooling, of rows, then of columns


def max_pool2d(x: Array) -> Array:
    y = np.maximum(x[:, ::2], x[:, 1::2])
    return np.maximum(y[:, :, ::2], y[:, :, 1::2])


def avg_pool2d(x: Array) -> Array:
    y = x[:, ::2] + x[:, 1::2]
    return 0.25 * (y[:, :, ::2] + y[:, :, 1::2])


def global_avg_pool(x: Array) -> Array:
    return _means(x.reshape(len(x), -1, x.shape[-1]))[:, np.newaxis]


def max_pool2d_3x3_s2(x: Array) -> Array:
    """The largest of three rows, then of three columns."""
    rows, columns = x.shape[1] - 2, x.shape[2] - 2
    y = np.maximum(np.maximum(x[:, :rows:2], x[:, 1::2][:, : (rows + 1) // 2]), x[:, 2::2])
    left, right = y[:, :, :columns:2], y[:, :, 2::2]
    return np.maximum(np.maximum(left, y[:, :, 1::2][:, :, : (columns + 1) // 2]), right)


# Normalisation


def _means(x: Array) -> Array:
    """The mean of each channel over the pixels, by a product: N 1 C of N P C."""
    count = x.shape[1]
    return np.asarray(np.full((1, 1, count), 1 / count, x.dtype) @ x)


def group_means(x: Array) -> Array:
    """The mean over the pixels and a group of channels, for each of these."""
    grouped = _means(x).reshape(len(x), 1, GROUPS, -1)
    return grouped.mean(-1).repeat(grouped.shape[-1], axis=-1)


def normalisation(
    images: int = 0, epsilon: float = EPSILON, means: Callable[[Array], Array] = _means
) -> Any:
    """Normalisation by moments of each image, or of so many parts of all."""

    def standard(x: Array, gamma: Array, beta: Array) -> Array:
        y = x.reshape(images or len(x), -1, x.shape[-1])
        y = y - means(y)
        y *= gamma / np.sqrt(means(np.square(y)) + x.dtype.type(epsilon))
        y += beta
        return y.reshape(x.shape)

    return standard


def _row_means(x: Array) -> Array:
    """The mean of each vector of channels, by a product."""
    return np.asarray(x @ np.full(x.shape[-1], 1 / x.shape[-1], x.dtype))[..., np.newaxis]


def _scales(x: Array) -> Array:
    """The inverse root of the mean square of each vector of channels."""
    return np.asarray(1 / np.sqrt(_row_means(np.square(x)) + x.dtype.type(EPSILON)))


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    y = x - _row_means(x)
    y *= _scales(y)
    y *= gamma
    y += beta
    return y


def batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> Array:
    """The vectors are combined first: a product and a sum for each element."""
    factor = gamma / np.sqrt(variance + x.dtype.type(BATCH_EPSILON))
    y = x * factor
    y += beta - mean * factor
    return y


def rms_norm(x: Array, gamma: Array) -> Array:
    y = x * _scales(x)
    y *= gamma
    return y


def lrn(x: Array) -> Array:
    """A power of 3/4 is made of roots."""
    squares = np.square(x)
    total = squares.copy()
    for apart in range(1, NEIGHBOURS // 2 + 1):
        total[..., apart:] += squares[..., :-apart]
        total[..., :-apart] += squares[..., apart:]
    total *= ALPHA
    total += BIAS
    np.sqrt(total, out=total)
    total *= np.sqrt(total)
    return np.divide(x, total, out=total)


# Softmax and losses


def softmax(x: Array) -> Array:
    y = x - x.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def log_softmax(x: Array) -> Array:
    y = x - x.max(axis=-1, keepdims=True)
    y -= np.log(np.exp(y).sum(axis=-1, keepdims=True))
    return y


def cross_entropies(x: Array, labels: Array) -> Array:
    """Logarithm of each row's sum of exponentials, less the number of its class."""
    top = x.max(axis=-1)
    total = np.exp(x - top[:, None]).sum(axis=-1)
    return np.asarray(np.log(total) + top - x[np.arange(len(x)), labels])


def binary_cross_entropy(x: Array, answers: Array) -> Any:
    return np.mean(np.maximum(x, 0) - x * answers + np.log1p(np.exp(-np.abs(x))))


def huber(x: Array, y: Array) -> Any:
    distance = np.abs(x - y)
    near = np.minimum(distance, 1)
    distance -= 0.5 * near
    distance *= near
    return distance.mean()


def ctc_loss(x: Array, labels: Array) -> Array:
    """Shares of paths, divided by their sum at each time, whose logarithms add up to the loss."""
    path = np.zeros((len(x), 2 * labels.shape[1] + 3), int)
    path[:, 3::2] = labels
    skips = (path[:, 2:] != path[:, :-2]) & (path[:, 2:] > 0)
    shares = np.take_along_axis(softmax(x), path[:, None, 2:], axis=2)
    alpha, loss = np.zeros(path.shape, x.dtype), np.zeros(len(x), x.dtype)
    alpha[:, 1] = 1
    for now in range(x.shape[1]):
        ahead = (alpha[:, 2:] + alpha[:, 1:-1] + alpha[:, :-2] * skips) * shares[:, now]
        total = ahead.sum(axis=1)
        alpha[:, 1] = 0
        alpha[:, 2:] = ahead / total[:, None]
        loss -= np.log(total)
    return np.asarray(loss - np.log(alpha[:, -2:].sum(axis=1)))


# Recurrent layers, which it does not have; a loop of Python's


def dynamic_rnn(x: Array, w: Array, u: Array, b: Array, lengths: Array) -> tuple[Array, Array]:
    batch, steps, units = x.shape
    state = cell = np.zeros((batch, units), x.dtype)
    states = np.empty_like(x)
    within = np.arange(steps)[:, None, None] < lengths[:, None]
    sums = (x @ w + b).swapaxes(0, 1)
    for step, inside in enumerate(within):
        entry, keep, new, exit_ = np.split(sums[step] + state @ u, 4, axis=-1)
        after = sigmoid(keep) * cell + sigmoid(entry) * np.tanh(new)
        cell = np.where(inside, after, cell)
        state = np.where(inside, sigmoid(exit_) * np.tanh(after), state)
        states[:, step] = state * inside
    return states, state


# Indexing


def scatter_add(x: Array, i: Array, *, shape: tuple[int, int]) -> Array:
    """By places in the flat table: of vectors of rows add.at is ten times as slow."""
    sums = np.zeros(shape, x.dtype)
    places = shape[1] * i[:, np.newaxis] + np.arange(shape[1])
    np.add.at(sums.reshape(-1), places.reshape(-1), x.reshape(-1))
    return sums


def scatter_nd_update(x: Array, i: Array, rows: Array) -> Array:
    result = x.copy()
    result[i] = rows
    return result


def one_hot(i: Array, *, depth: int) -> Array:
    result = np.zeros((len(i), depth), np.float32)
    result[np.arange(len(i)), i] = 1
    return result


# Sorting and searching


def top_k(x: Array) -> tuple[Array, Array]:
    """Five are selected, each at its place, without a sort of the others."""
    places = x.argpartition(range(-5, 0), axis=1)[:, :-6:-1]
    return x[np.arange(len(x))[:, np.newaxis], places], places


# Shapes and orders of elements. What NumPy has as a view is copied.


def depth_to_space(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, 2 * h, 2 * w, c // 4)  # copies: the axes are in another order


def pad_constant(x: Array) -> Array:
    n, h, w, c = x.shape
    y = np.zeros((n, h + 2, w + 4, c), x.dtype)
    y[:, 1:-1, 2:-2] = x
    return y


def pad_reflect(x: Array) -> Array:
    y = pad_constant(x)
    y[:, 0], y[:, -1] = y[:, 2], y[:, -3]
    y[:, :, :2], y[:, :, -2:] = y[:, :, 4:2:-1], y[:, :, -4:-6:-1]
    return y


# Random numbers, by a generator as NumPy's manual recommends it


def drawn(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(generator, operand, *parameters)``."""

    def implementation(np: Any, *parameters: Any) -> Callable[..., Any]:
        generator = np.random.default_rng()
        return lambda operand: draw(generator, operand, *parameters)

    return implementation


# Images


def resize_nearest(x: Array) -> Array:
    return x.repeat(2, axis=2).repeat(2, axis=1)


def im2col(x: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (1, 3, 3, 1))[..., 0, :, :, 0]
    n, h, w, c = windows.shape[:4]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(n, h, w, 9 * c)  # copies
