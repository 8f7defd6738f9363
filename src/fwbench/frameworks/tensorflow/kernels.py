"""TensorFlow's implementations of operations that are more than a path, by family."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout
from fwbench.frameworks.table import Call
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.convolution import Window
from fwbench.workloads.operations.normalisation import BATCH_EPSILON, EPSILON, GROUPS
from fwbench.workloads.operations.optimisers import RATE

# Vectors and matrices


def exchanged_svd(results: Arrays) -> Any:
    """u, s, v transposed as s, u, v; and back."""
    first, second, v = results
    return [second, first, v.T]


# Convolution. Channels last, as in Keras: only oneDNN and XLA know others on the CPU.


def _padding(window: Window) -> Any:
    """``VALID`` and ``SAME`` where they say it; with a stride ``SAME`` pads one end more."""
    if not window.padding:
        return "VALID"
    whole = {window.dilation * (extent - 1) for extent in window.kernel}
    if window.stride == 1 and whole == {2 * window.padding}:
        return "SAME"
    return [[0, 0], *[[window.padding] * 2] * window.rank, [0, 0]]


def _convolving(function: Any, window: Window, **strides: Any) -> Any:
    """A convolution with its arguments, the dilation where there is one."""
    dilated = {"dilations": window.dilation} if window.dilation > 1 else {}
    return partial(function, padding=_padding(window), **strides, **dilated)


def conv1d(tf: Any, window: Window) -> Any:
    return _convolving(tf.nn.conv1d, window, stride=window.stride)


def conv2d(tf: Any, window: Window) -> Any:
    return _convolving(tf.nn.conv2d, window, strides=window.stride)


def conv3d(tf: Any, window: Window) -> Any:
    return _convolving(tf.nn.conv3d, window, strides=[1, *[window.stride] * 3, 1])


def depthwise_conv2d(tf: Any, window: Window) -> Any:
    return _convolving(tf.nn.depthwise_conv2d, window, strides=[1, *[window.stride] * 2, 1])


def conv2d_transposed(tf: Any, window: Window) -> Any:
    """``SAME`` leaves out as much as makes the result ``stride`` times as large."""

    def conv2d_transpose(x: Any, w: Any) -> Any:
        n, h, width, _ = x.shape
        shape = n, h * window.stride, width * window.stride, window.filters
        return tf.nn.conv2d_transpose(x, w, shape, window.stride, "SAME")

    return conv2d_transpose


# Normalisation. Other than by batch it is composed, as in Keras.


def batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, gamma, beta, epsilon=BATCH_EPSILON)[0]


def batch_norm_inference(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    """Fused for float32, in which it has kernels."""
    if x.dtype == tf.float32:
        fused = tf.compat.v1.nn.fused_batch_norm
        return fused(x, gamma, beta, mean, variance, BATCH_EPSILON, is_training=False)[0]
    return unfused_batch_norm(x, gamma, beta, mean, variance)


def unfused_batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, BATCH_EPSILON)


def normalisation(*axes: int) -> Any:
    """Normalisation by the moments along axes."""

    def norm(x: Any, gamma: Any, beta: Any) -> Any:
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, EPSILON)

    return norm


def rms_norm(x: Any, gamma: Any) -> Any:
    mean = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    return x * tf.math.rsqrt(mean + EPSILON) * gamma


def group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    parts = GROUPS, x.shape[-1] // GROUPS
    grouped = tf.reshape(x, (*x.shape[:-1], *parts))
    mean, variance = tf.nn.moments(grouped, (1, 2, 4), keepdims=True)
    gamma, beta = tf.reshape(gamma, parts), tf.reshape(beta, parts)
    normal = tf.nn.batch_normalization(grouped, mean, variance, beta, gamma, EPSILON)
    return tf.reshape(normal, x.shape)


# Softmax and losses


def cross_entropy(x: Any, labels: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))


def cross_entropy_sum(x: Any, labels: Any) -> Any:
    return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))


def binary_cross_entropy(x: Any, answers: Any) -> Any:
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(answers, x))


def mse(x: Any, y: Any) -> Any:
    return tf.reduce_mean(tf.math.squared_difference(x, y))


def huber(x: Any, y: Any) -> Any:
    """Written as in ``tf.keras.losses.huber``, which computes in float32 in every dtype."""
    distance = tf.abs(x - y)
    return tf.reduce_mean(tf.where(distance < 1, 0.5 * tf.square(distance), distance - 0.5))


def ctc_loss(tf: Any, n: int, times: int, labels: int, *, sparse: bool = False) -> Any:
    """Loss by ``tf.nn.ctc_loss``, which calls a kernel for sparse labels alone."""
    lengths = None if sparse else tf.fill([n], labels), tf.fill([n], times)

    def ctc_loss(x: Any, y: Any) -> Any:
        y = tf.sparse.from_dense(y) if sparse else y
        return tf.nn.ctc_loss(y, x, *lengths, logits_time_major=False, blank_index=0)

    return ctc_loss


def labels_as(dtype: type[np.integer[Any]]) -> Any:
    def converted(arrays: Arrays) -> list[NDArray[Any]]:
        x, labels = arrays
        return [x, labels.astype(dtype)]

    return converted


# Attention, by the formula; only Keras has a function for it, which does the same


def _scores(q: Any, k: Any) -> Any:
    return tf.matmul(q * q.shape[-1] ** -0.5, k, transpose_b=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(_scores(q, k)), v)


def attention_causal(q: Any, k: Any, v: Any) -> Any:
    before = tf.linalg.band_part(tf.ones([q.shape[-2]] * 2, tf.bool), -1, 0)
    return tf.matmul(tf.nn.softmax(tf.where(before, _scores(q, k), q.dtype.min)), v)


# Recurrent layers, which are Keras's, with the weights that every call is given


#: Weights that a layer is built with, and no call has: Keras draws no orthogonal ones in bfloat16.
_UNUSED = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}


def recurrent_layer(name: str, **options: Any) -> Implementation:
    """An implementation by ``tf.keras.layers.<name>``, built by the first call, outside of graphs.

    Only then the dtype is known, and a graph must not make variables whenever it is traced.
    """

    def implementation(tf: Any, units: int) -> Callable[..., Any]:
        layers: list[Any] = []

        def call(x: Any, *weights: Any, **given: Any) -> Any:
            if not layers:
                with tf.init_scope():
                    made = getattr(tf.keras.layers, name)(
                        units, return_sequences=True, dtype=x.dtype.name, **_UNUSED, **options
                    )
                    made.build(x.shape)
                    layers.append(made)
            others = layers[0].non_trainable_variables
            return layers[0].stateless_call(weights, others, x, **given)[0]

        return call

    return implementation


def _step(tf: Any, sums: Any, within: Any, state: Any, cell: Any) -> tuple[Any, Any]:
    """State and cell after a step of an LSTM; what they were where a sequence has ended."""
    entry, keep, new, exit_ = tf.split(sums, 4, axis=-1)
    after = tf.sigmoid(keep) * cell + tf.sigmoid(entry) * tf.tanh(new)
    return (
        tf.where(within, tf.sigmoid(exit_) * tf.tanh(after), state),
        tf.where(within, after, cell),
    )


def _while_loop(tf: Any, sums: Any, u: Any, lengths: Any, zeros: Any) -> tuple[Any, Any]:
    """States of all times, and the last one; as many steps as the longest sequence has."""
    steps = sums.shape[0]
    times = tf.TensorArray(sums.dtype, steps).unstack(sums)
    states = tf.TensorArray(sums.dtype, steps, element_shape=zeros.shape)

    def body(now: Any, state: Any, cell: Any, states: Any) -> tuple[Any, ...]:
        within = (now < lengths)[:, None]
        state, cell = _step(tf, times.read(now) + state @ u, within, state, cell)
        states = states.write(now, tf.where(within, state, tf.zeros_like(state)))
        return now + 1, state, cell, states

    longest = tf.reduce_max(lengths)
    _, state, _, states = tf.while_loop(
        lambda now, *_: now < longest,
        body,
        (tf.constant(0), zeros, zeros, states),
        maximum_iterations=steps,  # XLA's gradient needs to know
    )
    return states.stack(), state


def _python_loop(tf: Any, sums: Any, u: Any, lengths: Any, zeros: Any) -> tuple[Any, Any]:
    """States of all times, and the last one, by a loop of Python's, which a graph unrolls."""
    state = cell = zeros
    states = []
    for now, of_now in enumerate(tf.unstack(sums)):
        within = (now < lengths)[:, None]
        state, cell = _step(tf, of_now + state @ u, within, state, cell)
        states.append(tf.where(within, state, zeros))
    return tf.stack(states), state


_LOOPS = {"native": _while_loop, "python": _python_loop}


def dynamic_rnn(tf: Any, units: int, loop: str) -> Callable[..., Any]:
    """An LSTM over sequences of different lengths, with time before the batch within the loop."""

    def call(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> tuple[Any, Any]:
        sums = tf.tensordot(tf.transpose(x, (1, 0, 2)), w, 1) + b
        zeros = tf.zeros((x.shape[0], units), x.dtype)
        states, state = _LOOPS[loop](tf, sums, u, tf.cast(lengths, tf.int32), zeros)
        return tf.transpose(states, (1, 0, 2)), state

    return call


#: Both biases are one array.
GRU = Layout(
    place=lambda arrays: [*arrays[:3], np.stack(arrays[3:])],
    restore=lambda arrays: [*arrays[:3], *arrays[3]],
)


# Indexing


#: An index is a vector of one coordinate.
COORDINATES = Layout(
    place=lambda arrays: [arrays[0], arrays[1][:, None], *arrays[2:]],
    restore=lambda arrays: [arrays[0], arrays[1][:, 0], *arrays[2:]],
)


def diag_part(x: Any) -> Any:
    """By the faster of two operators, which has no kernel of bfloat16."""
    return (tf.linalg.diag_part if x.dtype == tf.bfloat16 else tf.linalg.tensor_diag_part)(x)


# Random numbers, by its global generator


def drawn(name: str) -> Implementation:
    """An implementation of ``tf.random.<name>((n,), dtype=...)``."""
    return lambda tf, n: lambda like: getattr(tf.random, name)((n,), dtype=like.dtype)


def exponential(tf: Any, n: int) -> Callable[..., Any]:
    """By the logarithm: TensorFlow has none.

    Uniform numbers of 8 or 11 bits are too coarse for it, and in XLA some of them are 1.
    """

    def draw(like: Any) -> Any:
        wide = tf.float64 if like.dtype == tf.float64 else tf.float32
        return tf.cast(tf.math.log(1 - tf.random.uniform((n,), dtype=wide)) / -2, like.dtype)

    return draw


#: Logarithms of the probabilities, of a batch of one.
LOGITS = Layout(
    place=lambda operands: [np.log(operands[0])[np.newaxis]],
    restore=lambda operands: [np.exp(operands[0][0])],
    restore_results=lambda results: [results[0][0]],
)


# Optimisers: those of Keras, with the state that every call is given in the place of their own


#: Earlier steps, so many that Adam's corrections of its bias are 1.
_STEPS_BEFORE = 1_000_000


def optimiser(name: str, *states: str, **options: Any) -> Implementation:
    """An implementation by ``tf.keras.optimizers.<name>``, made by the first call.

    Args:
        states: the attributes that hold the variables of its state.
    """

    def implementation(tf: Any) -> Callable[..., None]:
        made: list[Any] = []

        def step(x: Any, g: Any, *variables: Any) -> None:
            if not made:
                with tf.init_scope():  # a graph must not make variables
                    new = getattr(tf.keras.optimizers, name)(RATE, **options)
                    new.build([x])
                    new.iterations.assign(_STEPS_BEFORE)
                for attribute, variable in zip(states, variables, strict=True):
                    setattr(new, attribute, [variable])
                made.append(new)
            made[0].apply([g], [x])

        return step

    return implementation


#: Keras adds up steps, not gradients: the rate and the sign are in the momentum.
VELOCITY = Layout(
    place=lambda arrays: [*arrays[:2], -RATE * arrays[2]],
    restore=lambda arrays: [*arrays[:2], arrays[2] / -RATE],
    restore_results=lambda results: [results[0], results[1] / -RATE],
)


# Images


def resize(method: str) -> Implementation:
    """The result is float32 for images of every dtype where it is interpolated."""
    return lambda tf, h, w: Call("image.resize", size=(h, w), method=method)(tf)


def im2col(tf: Any, *_: int) -> Any:
    ones = (1, 1, 1, 1)
    return Call(
        "image.extract_patches", sizes=(1, 3, 3, 1), strides=ones, rates=ones, padding="VALID"
    )(tf)
