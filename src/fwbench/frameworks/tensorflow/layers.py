"""The layers of a network as Keras layers."""

from collections.abc import Callable
from typing import Any

import keras

from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.models.layer import Layer
from fwbench.workloads.models.sampling import LOWEST, SampledWords
from fwbench.workloads.objective import DROPOUT_SEED

#: Smaller than any number that a network computes, and still a number in float32 and bfloat16, in
#: which it trains: the largest of a window is never what was added around.
_LOWEST = -1e30


class _Around(keras.layers.Layer):  # type: ignore[misc]
    """An image with what is never the largest around; Keras' pools know "valid" and "same"."""

    def __init__(self, padding: int, **options: Any) -> None:
        super().__init__(**options)
        self._padding = padding

    def call(self, x: Any) -> Any:
        """(batch, height, width, channels), higher and wider by twice the padding."""
        around = (self._padding, self._padding)
        return keras.ops.pad(x, ((0, 0), around, around, (0, 0)), constant_values=_LOWEST)


class _Positions(keras.layers.Layer):  # type: ignore[misc]
    """A learned vector for each place of a sequence."""

    def build(self, shape: Any) -> None:
        """The table for sequences of a shape."""
        self.table = self.add_weight(shape=shape[1:], initializer="zeros", name="table")

    def call(self, x: Any) -> Any:
        """(batch, length, units), and of the same shape."""
        return x + keras.ops.cast(self.table, x.dtype)


class _Attention(keras.layers.Layer):  # type: ignore[misc]
    """Scaled dot products of several heads."""

    def __init__(self, heads: int, *, causal: bool, **options: Any) -> None:
        super().__init__(**options)
        self._heads = heads
        self._causal = causal

    def call(self, x: Any) -> Any:
        """(batch, length, 3 units) to (batch, length, units)."""
        _, length, width = x.shape
        split = keras.ops.reshape(x, (-1, length, 3, self._heads, width // 3 // self._heads))
        queries, keys, values = (split[:, :, place] for place in range(3))
        result = keras.ops.dot_product_attention(queries, keys, values, is_causal=self._causal)
        return keras.ops.reshape(result, (-1, length, width // 3))


class _Gelu(keras.layers.Layer):  # type: ignore[misc]
    """By tanh."""

    def call(self, x: Any) -> Any:
        """Any shape, element by element."""
        return keras.ops.gelu(x, approximate=True)


class _Tokens(keras.layers.Layer):  # type: ignore[misc]
    """Batch and length as one."""

    def call(self, x: Any) -> Any:
        """(batch, length, units) to (batch * length, units)."""
        return keras.ops.reshape(x, (-1, x.shape[-1]))


class _SampledWords(keras.layers.Layer):  # type: ignore[misc]
    """Logits of the next word and of words that were drawn."""

    def __init__(self, layer: SampledWords, **options: Any) -> None:
        super().__init__(**options)
        self._vocabulary = layer.vocabulary
        self._words, self._log_expected = layer.drawn

    def build(self, shapes: Any) -> None:
        """A row and a number for each word."""
        (_, units), _ = shapes
        self.kernel = self.add_weight(shape=(self._vocabulary, units), name="kernel")
        self.bias = self.add_weight(shape=(self._vocabulary,), name="bias")

    def call(self, inputs: Any) -> Any:
        """(batch * length, units) and (batch, length) to (batch * length, 1 + samples)."""
        x, tokens = inputs
        ops, words = keras.ops, self._words
        right = ops.reshape(ops.roll(tokens, -1, 1), (-1,))
        of_right = ops.sum(x * ops.take(self.kernel, right, 0), 1) + self._offsets(right, x.dtype)
        of_words = ops.matmul(x, ops.transpose(ops.take(self.kernel, words, 0)))
        of_words = of_words + self._offsets(words, x.dtype)
        hits = ops.equal(right[:, None], words)
        return ops.concatenate([of_right[:, None], ops.where(hits, LOWEST, of_words)], 1)

    def _offsets(self, words: Any, dtype: Any) -> Any:
        ops = keras.ops
        expected = ops.take(ops.cast(self._log_expected, dtype), words, 0)
        return ops.take(self.bias, words, 0) - expected


def build(graph: Graph, x: Any, policy: Any) -> tuple[Any, list[list[Any]]]:
    """Logits by Keras' functional interface, and each node's layers, in a dtype or Keras policy."""
    of_nodes = [_LAYERS[type(node.layer)](node.layer, policy) for node in graph.nodes]
    return graph.evaluate([*map(_chained, of_nodes)], x), of_nodes


def segments(graph: Graph, x: Any, of_nodes: list[list[Any]]) -> list[Any]:
    """A Keras model of each segment of a network, in their order; they share its layers."""
    functions = [*map(_chained, of_nodes)]
    models = []
    for segment in graph.segments:
        result = graph.part(segment, functions, x)
        models.append(keras.Model(x, result))
        x = keras.Input(result.shape[1:], dtype=result.dtype)
    return models


def _chained(of_node: list[Any]) -> Callable[..., Any]:
    """Keras layers one after the other; the first may take several tensors, as a list."""

    def call(*inputs: Any) -> Any:
        x = [*inputs] if len(inputs) > 1 else inputs[0]
        for layer in of_node:
            x = layer(x)
        return x

    return call


def _conv(layer: layers.Conv, policy: Any) -> list[Any]:
    convolution = keras.layers.Conv2D(
        layer.filters,
        layer.kernel_size,
        layer.stride,
        padding="same" if layer.same else "valid",
        activation="relu" if layer.relu else None,
        use_bias=layer.bias,
        dtype=policy,
    )
    if layer.same or not any(map(sum, layer.zeros)):
        return [convolution]
    sides = zip(layer.zeros, layer.kernel_size, strict=True)
    if layer.stride == 1 and all(2 * zeros[0] + 1 == size for zeros, size in sides):
        convolution.padding = "same"  # the same zeros, and no copy of the image
        return [convolution]
    return [keras.layers.ZeroPadding2D(layer.zeros, dtype=policy), convolution]


def _average_pool(layer: layers.AveragePool, policy: Any) -> list[Any]:
    pool = keras.layers.AveragePooling2D(layer.size, layer.step, dtype=policy)
    if not layer.padding:
        return [pool]
    return [keras.layers.ZeroPadding2D(layer.padding, dtype=policy), pool]


def _max_pool(layer: layers.MaxPool, policy: Any) -> list[Any]:
    pool = keras.layers.MaxPooling2D(layer.size, layer.step, dtype=policy)
    return [_Around(layer.padding, dtype=policy), pool] if layer.padding else [pool]


_LAYERS: dict[type[Layer], Callable[[Any, Any], list[Any]]] = {
    layers.Conv: _conv,
    layers.AveragePool: _average_pool,
    layers.MaxPool: _max_pool,
    layers.GlobalAveragePool: lambda _, policy: [keras.layers.GlobalAveragePooling2D(dtype=policy)],
    layers.Flatten: lambda _, policy: [keras.layers.Flatten(dtype=policy)],
    layers.Dense: lambda layer, policy: [
        keras.layers.Dense(layer.units, activation="relu" if layer.relu else None, dtype=policy)
    ],
    layers.Relu: lambda _, policy: [keras.layers.ReLU(dtype=policy)],
    layers.Dropout: lambda layer, policy: [
        keras.layers.Dropout(layer.rate, seed=DROPOUT_SEED, dtype=policy)
    ],
    layers.BatchNorm: lambda layer, policy: [
        keras.layers.BatchNormalization(
            momentum=layer.momentum, epsilon=layer.epsilon, dtype=policy
        )
    ],
    layers.Add: lambda _, policy: [keras.layers.Add(dtype=policy)],
    layers.Concat: lambda _, policy: [keras.layers.Concatenate(dtype=policy)],
    layers.Embedding: lambda layer, policy: [
        keras.layers.Embedding(layer.vocabulary, layer.units, dtype=policy)
    ],
    layers.LSTM: lambda layer, policy: [
        keras.layers.LSTM(layer.units, return_sequences=layer.sequences, dtype=policy)
    ],
    layers.GRU: lambda layer, policy: [
        keras.layers.GRU(layer.units, return_sequences=layer.sequences, dtype=policy)
    ],
    layers.Positions: lambda _, policy: [_Positions(dtype=policy)],
    layers.LayerNorm: lambda layer, policy: [
        keras.layers.LayerNormalization(epsilon=layer.epsilon, dtype=policy)
    ],
    layers.Gelu: lambda _, policy: [_Gelu(dtype=policy)],
    layers.Attention: lambda layer, policy: [
        _Attention(layer.heads, causal=layer.causal, dtype=policy)
    ],
    layers.Tokens: lambda _, policy: [_Tokens(dtype=policy)],
    SampledWords: lambda layer, policy: [_SampledWords(layer, dtype=policy)],
}
