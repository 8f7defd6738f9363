"""NumPy's implementations of operations that are more than a path, by family."""

from __future__ import annotations

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
    BETA,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)

Array = NDArray[Any]

# Activations


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / (1.0 + np.exp(-x))


def softsign(x: NDArray[Any]) -> NDArray[Any]:
    return x / (1.0 + np.abs(x))


def gelu_tanh(x: NDArray[Any]) -> NDArray[Any]:
    # A power of 3 would take many times as long as two products.
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def selu(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))


# Elementwise arithmetic


def multiply_add(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    return x * y + z


def cast(dtype: str) -> Implementation:
    return lambda np: lambda x: x.astype(dtype)


# Reductions


def logsumexp(x: NDArray[Any]) -> NDArray[Any]:
    peaks = np.max(x, axis=1, keepdims=True)
    return np.asarray(np.log(np.sum(np.exp(x - peaks), axis=1)) + peaks[:, 0])


# Vectors and matrices


def l2_normalize(x: NDArray[Any]) -> NDArray[Any]:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


# Convolution, as a product of all windows with the kernel


def _windows(x: Array, window: Window) -> Array:
    """N H W C R S: a view of what each position of the kernel covers."""
    space = tuple(range(1, 1 + window.rank))
    padded = np.pad(x, [(0, 0), *[(window.padding,) * 2] * window.rank, (0, 0)])
    reach = [window.dilation * (extent - 1) + 1 for extent in window.kernel]
    every = sliding_window_view(padded, reach, axis=space)  # type: ignore[call-overload]
    strided = every[(slice(None), *[slice(None, None, window.stride)] * window.rank)]
    return strided[(..., *[slice(None, None, window.dilation)] * window.rank)]


def _group(windows: Array, w: Array) -> Array:
    """The convolution of one group of channels."""
    rank = w.ndim - 2
    window_axes = tuple(range(1 + rank, windows.ndim))
    return np.tensordot(windows, w, (window_axes, (rank, *range(rank))))


def convolution(_: Any, window: Window) -> Any:
    def convolution(x: Array, w: Array) -> Array:
        parts = zip(
            np.split(_windows(x, window), window.groups, axis=1 + window.rank),
            np.split(w, window.groups, axis=-1),
            strict=True,
        )
        return np.concatenate([_group(*part) for part in parts], axis=-1)

    return convolution


def depthwise_conv2d(_: Any, window: Window) -> Any:
    return lambda x, w: np.einsum("nhwcrs,rsc->nhwc", _windows(x, window), w[:, :, 0])


def conv2d_transposed(_: Any, window: Window) -> Any:
    """The convolution of the input, zeros between its elements, with the flipped kernel."""
    stride, edge = window.stride, window.kernel[0] - 1 - window.padding
    spread = Window(window.kernel, window.filters, padding=edge)

    def conv2d_transpose(x: Array, w: Array) -> Array:
        n, h, width, c = x.shape
        wide = np.zeros((n, stride * (h - 1) + 1, stride * (width - 1) + 1, c), x.dtype)
        wide[:, ::stride, ::stride] = x
        return _group(_windows(wide, spread), w[::-1, ::-1].swapaxes(2, 3))

    return conv2d_transpose


# Pooling. Windows that do not overlap are a reshape, others are shifted copies.


def tiles(x: Array) -> Array:
    """N H 2 W 2 C."""
    n, h, width, c = x.shape
    return x.reshape(n, h // 2, 2, width // 2, 2, c)


def max_pool2d_3x3_s2(x: Array) -> Array:
    """The largest of three rows, then of three columns."""
    rows, columns = x.shape[1] - 2, x.shape[2] - 2
    y = np.maximum(np.maximum(x[:, :rows:2], x[:, 1::2][:, : (rows + 1) // 2]), x[:, 2::2])
    left, right = y[:, :, :columns:2], y[:, :, 2::2]
    return np.maximum(np.maximum(left, y[:, :, 1::2][:, :, : (columns + 1) // 2]), right)


def max_pool1d(x: Array) -> Array:
    return x.reshape(len(x), -1, 2, x.shape[-1]).max(axis=2)


# Normalisation


def _standard(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """One pass for the mean, one for the variance."""
    centred = x - x.mean(axes, keepdims=True)
    variance = np.mean(np.square(centred), axes, keepdims=True)
    return centred / np.sqrt(variance + x.dtype.type(epsilon))


def normalisation(*axes: int, epsilon: float = EPSILON) -> Any:
    """Normalisation by the moments along axes."""
    return lambda x, gamma, beta: _standard(x, axes, epsilon) * gamma + beta


def batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> Array:
    """The vectors are combined first: a product and a sum for each element."""
    factor = gamma / np.sqrt(variance + x.dtype.type(BATCH_EPSILON))
    return x * factor + (beta - mean * factor)


def rms_norm(x: Array, gamma: Array) -> Array:
    mean = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(mean + x.dtype.type(EPSILON)) * gamma


def group_norm(x: Array, gamma: Array, beta: Array) -> Array:
    grouped = x.reshape(*x.shape[:-1], GROUPS, -1)
    return _standard(grouped, (1, 2, 4), EPSILON).reshape(x.shape) * gamma + beta


def lrn(x: Array) -> Array:
    squares = np.pad(np.square(x), [(0, 0)] * 3 + [(NEIGHBOURS // 2,) * 2])
    total = sliding_window_view(squares, NEIGHBOURS, axis=-1).sum(axis=-1)
    return np.asarray(x / (BIAS + ALPHA * total) ** BETA)


# Softmax and losses


def softmax(x: Array) -> Array:
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(y / y.sum(axis=-1, keepdims=True))


def log_softmax(x: Array) -> Array:
    y = x - x.max(axis=-1, keepdims=True)
    return np.asarray(y - np.log(np.exp(y).sum(axis=-1, keepdims=True)))


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
    return np.mean(near * (distance - near / 2))


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
    sums = np.zeros(shape, x.dtype)
    np.add.at(sums, i, x)
    return sums


def scatter_nd_update(x: Array, i: Array, rows: Array) -> Array:
    result = x.copy()
    result[i] = rows
    return result


def one_hot(i: Array, *, depth: int) -> Array:
    result = np.zeros((len(i), depth), np.float32)
    np.put_along_axis(result, i[:, None], 1, axis=1)
    return result


# Sorting and searching


def top_k(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Five are selected without a sort of the others."""
    unordered = np.argpartition(x, -5, axis=1)[:, -5:]
    values = np.take_along_axis(x, unordered, 1)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(values, order, 1), np.take_along_axis(unordered, order, 1)


# Shapes and orders of elements. What NumPy has as a view is copied.


def depth_to_space(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, 2 * h, 2 * w, c // 4)  # copies: the axes are in another order


# Random numbers, by a generator as NumPy's manual recommends it


def drawn(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(generator, operand, *parameters)``."""

    def implementation(np: Any, *parameters: Any) -> Callable[..., Any]:
        generator = np.random.default_rng()
        return lambda operand: draw(generator, operand, *parameters)

    return implementation


# Images


def resize_nearest(x: Array) -> Array:
    return x.repeat(2, axis=1).repeat(2, axis=2)


def im2col(x: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (1, 3, 3, 1))[..., 0, :, :, 0]
    n, h, w, c = windows.shape[:4]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(n, h, w, 9 * c)  # copies
