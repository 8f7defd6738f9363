"""JAX's implementations of operations that are more than a path, by family."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg  # jax has it once it is imported
import numpy as np
from jax import lax, random
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout
from fwbench.frameworks.table import Call, Laid
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
from fwbench.workloads.operations.optimisers import BETA1, BETA2, L1, MOMENTUM, RATE, RHO, TINY
from fwbench.workloads.operations.random import DROPPED

# Elementwise arithmetic


def cast(dtype: str) -> Implementation:
    return lambda jax: lambda x: x.astype(dtype)


# Vectors and matrices


def l2_normalize(x: Any) -> Any:
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


def contraction(left: int, right: int, **more: Any) -> Call:
    """A product of matrices over these axes: eagerly, ``x.T`` would be a copy of its own."""
    return Call("lax.dot_general", dimension_numbers=(((left,), (right,)), ((), ())), **more)


# Convolution, channels last


#: By the number of axes of space: the layouts of input, kernel and result.
_DIMENSIONS = {
    1: ("NLC", "LIO", "NLC"),
    2: ("NHWC", "HWIO", "NHWC"),
    3: ("NDHWC", "DHWIO", "NDHWC"),
}


def convolution(jax: Any, window: Window) -> Any:
    return partial(
        jax.lax.conv_general_dilated,
        window_strides=(window.stride,) * window.rank,
        padding=((window.padding, window.padding),) * window.rank,
        rhs_dilation=(window.dilation,) * window.rank,
        dimension_numbers=_DIMENSIONS[window.rank],
        feature_group_count=window.groups,
    )


def conv2d_transposed(jax: Any, window: Window) -> Any:
    """``SAME`` leaves out as much as makes the result ``stride`` times as large."""
    return partial(
        jax.lax.conv_transpose,
        strides=(window.stride,) * window.rank,
        padding="SAME",
        dimension_numbers=_DIMENSIONS[window.rank],
        transpose_kernel=True,
    )


# Pooling, which is a reduction of windows


def max_pool(x: Any, *kernel: int) -> Any:
    strides = (1, *(2 for _ in kernel), 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, *kernel, 1), strides, "VALID")


def avg_pool2d(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


# Normalisation, by ``jax.nn.standardize``, whose variance is Flax's too: of squares, not deviations


def normalisation(*axes: int, epsilon: float = EPSILON) -> Any:
    """Normalisation by the moments along axes."""
    return lambda x, gamma, beta: jax.nn.standardize(x, axes, epsilon=epsilon) * gamma + beta


def batch_norm_inference(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    """With the vectors multiplied first, as in Flax."""
    return (x - mean) * (lax.rsqrt(variance + BATCH_EPSILON) * gamma) + beta


def rms_norm(x: Any, gamma: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + EPSILON) * gamma


def group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    grouped = jnp.reshape(x, (*x.shape[:-1], GROUPS, -1))
    standard = jax.nn.standardize(grouped, (1, 2, 4), epsilon=EPSILON)
    return jnp.reshape(standard, x.shape) * gamma + beta


def lrn(x: Any) -> Any:
    """JAX has no function of its own for it."""
    window = (1, 1, 1, NEIGHBOURS)
    total = lax.reduce_window(jnp.square(x), 0.0, lax.add, window, (1, 1, 1, 1), "SAME")
    return x / (BIAS + ALPHA * total) ** BETA


# Softmax and losses, which it leaves to packages built on it (written as in Optax)


def cross_entropies(x: Any, labels: Any) -> Any:
    """Only what belongs to the labels is subtracted from, as in Optax."""
    return jax.nn.logsumexp(x, 1) - pick(x, labels)


def binary_cross_entropy(x: Any, answers: Any) -> Any:
    """By the formula of TensorFlow's documentation, which takes half the time of Optax's."""
    return jnp.mean(jnp.maximum(x, 0) - x * answers + jnp.log1p(jnp.exp(-jnp.abs(x))))


def huber(x: Any, y: Any) -> Any:
    distance = jnp.abs(x - y)
    return jnp.mean(jnp.where(distance < 1, 0.5 * jnp.square(distance), distance - 0.5))


# Attention, as in Flax's layer; ``jax.nn.dot_product_attention`` takes up to twice as long


def attention(q: Any, k: Any, v: Any, *, causal: bool = False) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q * q.shape[-1] ** -0.5, k)
    if causal:
        before = jnp.tri(q.shape[1], dtype=bool)
        scores = jnp.where(before, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


# Recurrent layers, by ``lax.scan`` over time; JAX has none. Weights go from step to step with the
# state: steps are compiled once, not once a call, if they close over nothing. Gates have arrays of
# their own: where steps take parts of one, XLA's code takes up to twice as long.


def scanned(step: Any, gates: int, x: Any, w: Any, b: Any, weights: Any, state: Any) -> Any:
    """The states at every time."""
    sums = jnp.split(jnp.swapaxes(x @ w + b, 0, 1), gates, axis=-1)
    _, states = jax.lax.scan(step, (state, weights), sums)
    return jnp.swapaxes(states, 0, 1)


def rnn_step(carried: Any, now: Any) -> Any:
    state, (u,) = carried
    state = jnp.tanh(now[0] + state @ u)
    return (state, (u,)), state


def lstm_step(carried: Any, now: Any) -> Any:
    (state, cell), (u,) = carried
    entry, keep, new, exit_ = map(jnp.add, now, jnp.split(state @ u, 4, axis=-1))
    cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(entry) * jnp.tanh(new)
    state = jax.nn.sigmoid(exit_) * jnp.tanh(cell)
    return ((state, cell), (u,)), state


def gru_step(carried: Any, now: Any) -> Any:
    state, (u, c) = carried
    z, r, n = now
    of_z, of_r, of_n = jnp.split(state @ u + c, 3, axis=-1)
    update = jax.nn.sigmoid(z + of_z)
    state = update * state + (1 - update) * jnp.tanh(n + jax.nn.sigmoid(r + of_r) * of_n)
    return (state, (u, c)), state


def _masked_step(carried: Any, now: Any) -> Any:
    """State and cell stay what they were where a sequence has ended."""
    before, weights = carried
    *sums, within = now
    (after, _), _ = lstm_step(carried, sums)
    state, cell = (jnp.where(within, *pair) for pair in zip(after, before, strict=True))
    return ((state, cell), weights), jnp.where(within, state, 0)


def _python_scan(step: Any, carried: Any, operands: Any) -> Any:
    """``lax.scan`` by a loop of Python's, which jit unrolls."""
    results = []
    for now in zip(*map(jnp.unstack, operands), strict=True):
        carried, result = step(carried, now)
        results.append(result)
    return carried, jnp.stack(results)


LOOPS = {"native": jax.lax.scan, "python": _python_scan}


def dynamic_rnn(loop: Any, x: Any, w: Any, u: Any, b: Any, lengths: Any) -> tuple[Any, Any]:
    initial = zeros(x, len(w))
    sums = jnp.split(jnp.swapaxes(x @ w + b, 0, 1), 4, axis=-1)
    within = (jnp.arange(x.shape[1])[:, None] < lengths)[..., None]
    ((state, _), _), states = loop(_masked_step, ((initial, initial), (u,)), (*sums, within))
    return jnp.swapaxes(states, 0, 1), state


def zeros(x: Any, units: int) -> Any:
    return jnp.zeros((len(x), units), x.dtype)


# Indexing. Its integers have 32 bits by default.


def _narrowed(arrays: Arrays) -> list[NDArray[Any]]:
    return [x.astype(np.int32) if x.dtype == np.int64 else x for x in arrays]


_INT32 = Layout(place=_narrowed)


def with_int32(entry: str | Implementation) -> Laid:
    """The implementation, with integers of 32 bits."""
    return Laid(entry, _INT32)


def pick(x: Any, i: Any) -> Any:
    return jnp.take_along_axis(x, i[:, None], 1, mode="clip")[:, 0]


def scatter_add(jax: Any, n: int, d: int) -> Any:
    return lambda x, i: jax.numpy.zeros((n, d), x.dtype).at[i].add(x)


def sequence_mask(jax: Any, d: int) -> Any:
    return lambda x, lengths: x * (jax.numpy.arange(d) < lengths[:, None])


# Shapes and orders of elements


def depth_to_space(x: Any) -> Any:
    n, h, w, c = x.shape
    blocks = jnp.transpose(jnp.reshape(x, (n, h, w, 2, 2, c // 4)), (0, 1, 3, 2, 4, 5))
    return jnp.reshape(blocks, (n, 2 * h, 2 * w, c // 4))


# Random numbers. JAX's users keep the state: a step splits the key that the step before has left,
# and draws with one half. So does every timed call, in one compiled function where there is one. A
# constant key would give the same numbers in every call, and one that a compiled function closes
# over would make them a constant.


class Keyed:
    """A random function ``draw(key, *operands)`` with a key that it splits in every call."""

    #: The generator, as ``jax.random.key`` names it; None for JAX's default.
    generator: str | None = None

    def __init__(self, draw: Callable[..., Any]) -> None:
        self._draw = draw

    def executed(self, execute: Callable[[Any], Any]) -> Callable[..., Any]:
        """The function of the operands."""
        step = execute(self._step)
        key = jax.random.key(0, impl=self.generator)

        def call(*operands: Any) -> Any:
            nonlocal key
            key, result = step(key, *operands)
            return result

        return call

    def _step(self, key: Any, *operands: Any) -> tuple[Any, Any]:
        """The key for the next call, and what is drawn in this one."""
        key, subkey = jax.random.split(key)
        return key, self._draw(subkey, *operands)


def drawn(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(key, operand, *parameters)``."""

    def implementation(_jax: Any, *parameters: Any) -> Any:
        return Keyed(lambda key, operand: draw(key, operand, *parameters))

    return implementation


def dropout(key: Any, x: Any) -> Any:
    kept = 1 - DROPPED
    return jnp.where(random.bernoulli(key, kept, x.shape), x / kept, 0)


# Optimisers, by the formulas; JAX has none. The results of a step are what the next one begins with


def sgd(x: Any, g: Any) -> Any:
    return x - RATE * g


def momentum(x: Any, g: Any, m: Any) -> Any:
    m = MOMENTUM * m + g
    return x - RATE * m, m


def nesterov(x: Any, g: Any, m: Any) -> Any:
    m = MOMENTUM * m + g
    return x - RATE * (g + MOMENTUM * m), m


def adam(x: Any, g: Any, m: Any, v: Any, decay: float = 0.0) -> Any:
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * jnp.square(g)
    step = m / (jnp.sqrt(v) + TINY)
    return x - RATE * (step + decay * x if decay else step), m, v


def rmsprop(x: Any, g: Any, v: Any) -> Any:
    v = RHO * v + (1 - RHO) * jnp.square(g)
    return x - RATE * g / (jnp.sqrt(v) + TINY), v


def adagrad(x: Any, g: Any, v: Any) -> Any:
    v = v + jnp.square(g)
    return x - RATE * g / (jnp.sqrt(v) + TINY), v


def ftrl(x: Any, g: Any, z: Any, v: Any) -> Any:
    later = v + jnp.square(g)
    z = z + g - (jnp.sqrt(later) - jnp.sqrt(v)) / RATE * x
    pulled = jnp.sign(z) * jnp.maximum(jnp.abs(z) - L1, 0)
    return -RATE * pulled / jnp.sqrt(later), z, later


# Images


def _swapped(arrays: Arrays, *, channel_first: bool) -> list[NDArray[Any]]:
    """Patches with the channel before the place in the patch, or behind it."""
    (x,) = arrays
    n, h, w, c = x.shape
    parts = (9, c // 9) if channel_first else (c // 9, 9)
    return [np.ascontiguousarray(x.reshape(n, h, w, *parts).swapaxes(3, 4).reshape(x.shape))]


PATCHES = Layout(
    place_results=lambda arrays: _swapped(arrays, channel_first=True),
    restore_results=lambda arrays: _swapped(arrays, channel_first=False),
)


def resize(x: Any, h: int, w: int, method: str) -> Any:
    n, _, _, c = x.shape
    return jax.image.resize(x, (n, h, w, c), method)


def im2col(x: Any) -> Any:
    return jax.lax.conv_general_dilated_patches(
        x, (3, 3), (1, 1), "VALID", dimension_numbers=_DIMENSIONS[2]
    )
