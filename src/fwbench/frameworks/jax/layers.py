"""The layers of a network as pure functions of JAX's: images with their channels last."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn, random

from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph, Recomputed
from fwbench.workloads.models.layer import Layer, Node, Shape
from fwbench.workloads.models.sampling import LOWEST, SampledWords
from fwbench.workloads.objective import DROPOUT_SEED

#: The parameters of a layer, or what it keeps from one step to the next.
Arrays = Sequence[Any]

#: Images, kernels, and results of convolutions.
_DIMENSIONS = ("NHWC", "HWIO", "NHWC")

#: The axis of the mesh along which every replica has a device.
AXIS = "replicas"

#: They compute in float32 at least, with parameters that are not rounded.
_PRECISE = (layers.BatchNorm, layers.LayerNorm)


class Network:
    """A network as pure functions of its parameters.

    Args:
        dtype: of the computation; parameters are float32 where it is narrower.
        recompute: whether a backward pass computes results once more instead of keeping them.
        synchronized: whether devices normalize their shares of a batch together, along AXIS.
    """

    def __init__(
        self, graph: Graph, dtype: str, *, recompute: bool = False, synchronized: bool = False
    ) -> None:
        self._graph = graph
        self._dtype = dtype
        self._recompute = recompute
        self._moments = partial(_moments, synchronized)

    def initial_state(self, *, drops: bool) -> list[Arrays]:
        """The initial state that each layer keeps from one step to the next.

        Moving averages of batch normalization; of dropout a random key, and its rate.
        """
        return [
            state(node.layer, node.shapes[0], place, drops) if state else []
            for place, node in enumerate(self._graph.nodes)
            for state in [_STATES.get(type(node.layer))]
        ]

    def answer(self, parameters: Sequence[Arrays], state: Sequence[Arrays], x: Any) -> Any:
        """The logits of a batch, float32 at least, once the network is trained."""
        functions = [
            partial(_FUNCTIONS[type(node.layer)], node.layer, [*given, *of_layer])
            for node, given, of_layer in zip(
                self._graph.nodes, self._given(parameters), state, strict=True
            )
        ]
        return self._evaluate(functions, x)

    def train(
        self, parameters: Sequence[Arrays], state: Sequence[Arrays], x: Any
    ) -> tuple[Any, list[Arrays]]:
        """The logits of a batch in training, float32 at least, and each layer's next state."""
        later = [*state]

        def function(place: int, node: Node, given: Arrays) -> Callable[..., Any]:
            if type(node.layer) not in _TRAINED:
                return partial(_FUNCTIONS[type(node.layer)], node.layer, given)

            def call(x: Any) -> Any:
                trained = _TRAINED[type(node.layer)]
                result, later[place] = trained(node.layer, given, state[place], x, self._moments)
                return result

            return call

        given = self._given(parameters)
        functions = [*map(function, range(len(given)), self._graph.nodes, given)]
        recomputed = partial(_recomputed, later) if self._recompute else None
        return self._evaluate(functions, x, recomputed), later

    def _given(self, parameters: Sequence[Arrays]) -> list[Arrays]:
        """The parameters of each layer in the dtype that it computes in."""
        return [
            arrays
            if isinstance(node.layer, _PRECISE)
            else [array.astype(self._dtype) for array in arrays]
            for node, arrays in zip(self._graph.nodes, parameters, strict=True)
        ]

    def _evaluate(
        self, functions: Sequence[Callable[..., Any]], x: Any, recomputed: Recomputed | None = None
    ) -> Any:
        if jnp.issubdtype(x.dtype, jnp.floating):
            x = x.astype(self._dtype)
        return _precise(self._graph.evaluate(functions, x, recomputed))


def _recomputed(states: list[Arrays], run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function by ``jax.checkpoint``, pure but for ``states`` of layers, which it replaces."""

    def pure(x: Any) -> Any:
        result = run(x)
        return result, [*states]

    def call(x: Any) -> Any:
        result, states[:] = jax.checkpoint(pure)(x)
        return result

    return call


def _precise(x: Any) -> Any:
    """In float32 where it is narrower."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


# Every function takes its layer, the layer's parameters, and results of other layers.


def _conv(layer: layers.Conv, parameters: Arrays, x: Any) -> Any:
    kernel, *bias = parameters
    strides = (layer.stride, layer.stride)
    result = lax.conv_general_dilated(
        x, kernel, strides, layer.zeros, dimension_numbers=_DIMENSIONS
    )
    if bias:
        result = result + bias[0]
    return nn.relu(result) if layer.relu else result


def _dense(layer: layers.Dense, parameters: Arrays, x: Any) -> Any:
    kernel, bias = parameters
    result = x @ kernel + bias
    return nn.relu(result) if layer.relu else result


def _pooled(layer: Any, x: Any, start: float, combine: Callable[..., Any]) -> Any:
    """Windows of an image; what is added around them is what they start with."""
    around = (layer.padding, layer.padding)
    return lax.reduce_window(
        x,
        start,
        combine,
        window_dimensions=(1, layer.size, layer.size, 1),
        window_strides=(1, layer.step, layer.step, 1),
        padding=((0, 0), around, around, (0, 0)),
    )


def _recurrent(layer: layers.Recurrent, step: Any, states: int, sums: Any) -> Any:
    """Over time by ``lax.scan``, as JAX has no recurrent layers; the first state is the output."""
    zeros = jnp.zeros((len(sums), layer.units), sums.dtype)
    last, outputs = lax.scan(step, (zeros,) * states, jnp.swapaxes(sums, 0, 1))
    return jnp.swapaxes(outputs, 0, 1) if layer.sequences else last[0]


def _lstm(layer: layers.LSTM, parameters: Arrays, x: Any) -> Any:
    kernel, recurrent, bias = parameters

    def step(carried: Any, now: Any) -> Any:
        output, cell = carried
        enter, keep, new, leave = jnp.split(now + output @ recurrent, 4, axis=-1)
        cell = nn.sigmoid(keep) * cell + nn.sigmoid(enter) * jnp.tanh(new)
        output = nn.sigmoid(leave) * jnp.tanh(cell)
        return (output, cell), output if layer.sequences else None

    return _recurrent(layer, step, 2, x @ kernel + bias)


def _gru(layer: layers.GRU, parameters: Arrays, x: Any) -> Any:
    kernel, recurrent, (bias, of_outputs) = parameters

    def step(carried: Any, now: Any) -> Any:
        (output,) = carried
        products = jnp.split(output @ recurrent + of_outputs, 3, axis=-1)
        (z, r, n), (of_z, of_r, of_n) = jnp.split(now, 3, axis=-1), products
        update = nn.sigmoid(z + of_z)
        new = jnp.tanh(n + nn.sigmoid(r + of_r) * of_n)
        output = update * output + (1 - update) * new
        return (output,), output if layer.sequences else None

    return _recurrent(layer, step, 1, x @ kernel + bias)


def _attention(layer: layers.Attention, _: Arrays, x: Any) -> Any:
    """In float32 by ``nn.dot_product_attention``, which computes in it in every dtype."""
    batch, length, width = x.shape
    split = jnp.reshape(x, (batch, length, 3, layer.heads, -1))
    queries, keys, values = (split[:, :, place] for place in range(3))
    if x.dtype == jnp.float32:
        result = nn.dot_product_attention(queries, keys, values, is_causal=layer.causal)
        return jnp.reshape(result, (batch, length, width // 3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) / queries.shape[-1] ** 0.5
    if layer.causal:
        scores = jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf)
    weights = nn.softmax(_precise(scores)).astype(x.dtype)
    return jnp.reshape(jnp.einsum("bhqk,bkhd->bqhd", weights, values), (batch, length, width // 3))


def _batch_norm(layer: layers.BatchNorm, parameters: Arrays, x: Any) -> Any:
    """By the moving averages, which follow the parameters."""
    scale, offset, mean, variance = parameters
    return _normalized(layer, (scale, offset), x, mean, variance)


def _layer_norm(layer: layers.LayerNorm, parameters: Arrays, x: Any) -> Any:
    wide = _precise(x)
    moments = jnp.mean(wide, -1, keepdims=True), jnp.var(wide, -1, keepdims=True)
    return _normalized(layer, parameters, x, *moments)


def _normalized(layer: Any, parameters: Arrays, x: Any, mean: Any, variance: Any) -> Any:
    scale, offset = parameters
    standard = (_precise(x) - mean) * lax.rsqrt(variance + layer.epsilon)
    return (standard * scale + offset).astype(x.dtype)


def _sampled_words(layer: SampledWords, parameters: Arrays, x: Any, tokens: Any) -> Any:
    kernel, bias = parameters
    words, log_expected = layer.drawn
    right = jnp.ravel(jnp.roll(tokens, -1, 1))
    offsets = bias - log_expected.astype(bias.dtype)
    of_right = jnp.sum(x * kernel[right], 1) + offsets[right]
    of_words = x @ kernel[words].T + offsets[words]
    hits = right[:, None] == words
    return jnp.column_stack([of_right, jnp.where(hits, LOWEST, of_words)])


_FUNCTIONS: dict[type[Layer], Callable[..., Any]] = {
    layers.Conv: _conv,
    layers.AveragePool: lambda layer, _, x: _pooled(layer, x, 0.0, lax.add) / layer.size**2,
    layers.MaxPool: lambda layer, _, x: _pooled(layer, x, -jnp.inf, lax.max),
    layers.GlobalAveragePool: lambda _, __, x: jnp.mean(x, (1, 2)),
    layers.Flatten: lambda _, __, x: jnp.reshape(x, (len(x), -1)),
    layers.Dense: _dense,
    layers.Relu: lambda _, __, x: nn.relu(x),
    layers.Dropout: lambda _, __, x: x,
    layers.BatchNorm: _batch_norm,
    layers.Add: lambda _, __, x, *others: sum(others, x),
    layers.Concat: lambda _, __, *inputs: jnp.concatenate(inputs, -1),
    layers.Embedding: lambda _, parameters, x: parameters[0][x],
    layers.LSTM: _lstm,
    layers.GRU: _gru,
    layers.Positions: lambda _, parameters, x: x + parameters[0],
    layers.LayerNorm: _layer_norm,
    layers.Gelu: lambda _, __, x: nn.gelu(x, approximate=True),
    layers.Attention: _attention,
    layers.Tokens: lambda _, __, x: jnp.reshape(x, (-1, x.shape[-1])),
    SampledWords: _sampled_words,
}


# Those that compute something else while they are trained also take their state, and return it.


def _moments(synchronized: bool, x: Any) -> Arrays:
    """Mean and variance; of shares of several devices by one exchange, as in Flax's BatchNorm."""
    axes = tuple(range(x.ndim - 1))
    if not synchronized:
        return jnp.mean(x, axes), jnp.var(x, axes)
    mean, square = lax.pmean((jnp.mean(x, axes), jnp.mean(lax.square(x), axes)), AXIS)
    return mean, jnp.maximum(0.0, square - lax.square(mean))


def _trained_batch_norm(
    layer: layers.BatchNorm, parameters: Arrays, averages: Arrays, x: Any, moments_of: Any
) -> tuple[Any, Arrays]:
    moments = moments_of(_precise(x))
    later = [
        layer.momentum * average + (1.0 - layer.momentum) * moment
        for average, moment in zip(averages, moments, strict=True)
    ]
    return _normalized(layer, parameters, x, *moments), later


def _trained_dropout(
    _: layers.Dropout, __: Arrays, state: Arrays, x: Any, ___: Any
) -> tuple[Any, Arrays]:
    """The rate is an argument: what is checked without dropout is the code that is timed."""
    key, rate = state
    key, subkey = random.split(key)
    kept = random.bernoulli(subkey, 1.0 - rate, x.shape)
    return jnp.where(kept, x / (1.0 - rate).astype(x.dtype), 0.0), [key, rate]


_TRAINED: dict[type[Layer], Callable[..., tuple[Any, Arrays]]] = {
    layers.BatchNorm: _trained_batch_norm,
    layers.Dropout: _trained_dropout,
}


def _key_and_rate(layer: layers.Dropout, _: Shape, place: int, drops: bool) -> Arrays:
    key = random.fold_in(random.key(DROPOUT_SEED), place)  # of its own for each layer
    return [key, jnp.asarray(layer.rate if drops else 0.0)]


_STATES: dict[type[Layer], Callable[[Any, Shape, int, bool], Arrays]] = {
    layers.BatchNorm: lambda _, before, *__: [jnp.zeros(before[-1]), jnp.ones(before[-1])],
    layers.Dropout: _key_and_rate,
}
