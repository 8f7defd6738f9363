"""The layers of a network as Gluon blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mxnet import gluon
from mxnet.gluon import nn, rnn

from fwbench.frameworks.learner import Job
from fwbench.frameworks.mxnet import kernels
from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.models.layer import Layer, Shape
from fwbench.workloads.models.sampling import LOWEST, SampledWords


class Network(gluon.HybridBlock):  # type: ignore[misc]
    """A network of blocks."""

    def __init__(self, graph: Graph, job: Job) -> None:
        super().__init__()
        self._graph = graph
        # Trainers number what they keep by the names of parameters: the same in each network.
        with self.name_scope():
            self.blocks = [
                _BLOCKS[type(node.layer)](node.layer, node.shapes[0], job) for node in graph.nodes
            ]
        for block in self.blocks:
            self.register_child(block)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The logits of a batch."""
        return self._graph.evaluate(self.blocks, x)


class _Add(gluon.HybridBlock):  # type: ignore[misc]
    def hybrid_forward(self, F: Any, x: Any, *others: Any) -> Any:
        """Arrays of one shape to one of that shape."""
        for other in others:
            x = x + other
        return x


class _Concat(gluon.HybridBlock):  # type: ignore[misc]
    """Images whose channels are one after the other."""

    def hybrid_forward(self, F: Any, x: Any, *others: Any) -> Any:
        """(batch, channels, ...) each to (batch, all channels, ...)."""
        return F.concat(x, *others, dim=1)


class _Recurrent(gluon.HybridBlock):  # type: ignore[misc]
    """A recurrent layer of which the last output is the result, or each."""

    def __init__(self, layer: layers.Recurrent, inputs: int) -> None:
        super().__init__()
        self._sequences = layer.sequences
        kind = getattr(rnn, type(layer).__name__)
        with self.name_scope():
            self.cells = kind(layer.units, layout="NTC", input_size=inputs)
        if isinstance(layer, layers.LSTM):
            # MXNet has two biases, whose sum counts: training both would double the step.
            self.cells.l0_h2h_bias.grad_req = "null"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """(batch, length, inputs) to (batch, units), or (batch, length, units)."""
        outputs = self.cells(x)
        if self._sequences:
            return outputs
        return F.squeeze(F.slice_axis(outputs, axis=1, begin=-1, end=None), axis=1)


class _Positions(gluon.HybridBlock):  # type: ignore[misc]
    """A learned vector for each place of a sequence."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        with self.name_scope():
            self.table = self.params.get("table", shape=shape, init="zeros")

    def hybrid_forward(self, F: Any, x: Any, table: Any) -> Any:
        """(batch, length, units), and of the same shape."""
        return F.broadcast_add(x, F.expand_dims(table, axis=0))


class _Attention(gluon.HybridBlock):  # type: ignore[misc]
    """Scaled dot products of several heads."""

    def __init__(self, layer: layers.Attention, before: Shape) -> None:
        super().__init__()
        length, width = before
        self._heads = layer.heads
        self._size = width // 3 // layer.heads
        if layer.causal:
            # Added to what a place does not see; exp of it is zero.
            unseen = np.where(np.tri(length), 0.0, -1e30)
            with self.name_scope():
                self.unseen = self.params.get_constant("unseen", unseen[None])

    def hybrid_forward(self, F: Any, x: Any, unseen: Any = None) -> Any:
        """(batch, length, 3 units) to (batch, length, units), by the operators of GluonNLP's."""
        # (batch, length, 3, heads, size) to (length, batch, heads * 3 * size)
        split = F.reshape(x, shape=(0, 0, 3, self._heads, self._size))
        rows = F.reshape(F.transpose(split, axes=(1, 0, 3, 2, 4)), shape=(0, 0, -1))
        scores = F.contrib.interleaved_matmul_selfatt_qk(rows, heads=self._heads)
        if unseen is not None:
            scores = F.broadcast_add(scores, unseen)
        weights = F.softmax(scores, axis=-1)
        result = F.contrib.interleaved_matmul_selfatt_valatt(rows, weights, heads=self._heads)
        return F.swapaxes(result, dim1=0, dim2=1)


class _Gelu(gluon.HybridBlock):  # type: ignore[misc]
    """By tanh; MXNet's own is by the error function."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Any shape, element by element."""
        return kernels.gelu_tanh(F, x)


class _Tokens(gluon.HybridBlock):  # type: ignore[misc]
    """Batch and length as one."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """(batch, length, units) to (batch * length, units)."""
        return F.reshape(x, shape=(-3, 0))


class _SampledWords(gluon.HybridBlock):  # type: ignore[misc]
    """Logits of the next word and of words that were drawn."""

    def __init__(self, layer: SampledWords, units: int) -> None:
        super().__init__()
        words, log_expected = layer.drawn
        with self.name_scope():
            self.kernel = self.params.get("kernel", shape=(layer.vocabulary, units))
            self.bias = self.params.get("bias", shape=(layer.vocabulary,))
            self.words = self.params.get_constant("words", words)
            self.classes = self.params.get_constant("classes", np.array([-1, *words]))
            self.log_expected = self.params.get_constant("log_expected", log_expected)

    def hybrid_forward(self, F: Any, x: Any, tokens: Any, **of_words: Any) -> Any:
        """(batch * length, units) and (batch, length) to (batch * length, 1 + samples)."""
        kernel, words = of_words["kernel"], of_words["words"]
        offsets = of_words["bias"] - of_words["log_expected"]
        later = F.slice_axis(tokens, axis=1, begin=1, end=None)
        first = F.slice_axis(tokens, axis=1, begin=0, end=1)
        right = F.reshape(F.concat(later, first, dim=1), shape=(-1,))
        of_right = F.sum(x * F.take(kernel, right), axis=1) + F.take(offsets, right)
        of_drawn = F.broadcast_add(
            F.dot(x, F.take(kernel, words), transpose_b=True),
            F.expand_dims(F.take(offsets, words), axis=0),
        )
        logits = F.concat(F.expand_dims(of_right, axis=1), of_drawn, dim=1)
        hits = F.broadcast_equal(
            F.expand_dims(F.cast(right, "float32"), axis=1),
            F.expand_dims(F.cast(of_words["classes"], "float32"), axis=0),
        )
        # Behind concat, whose own result ends the process in the loss's log_softmax.
        return F.where(hits, F.ones_like(logits) * LOWEST, logits)


class _GlobalAveragePool(nn.HybridSequential):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.add(nn.GlobalAvgPool2D(), nn.Flatten())


def _conv(layer: layers.Conv, before: Shape, _: Job) -> Any:
    (above, _below), (left, _right) = layer.zeros
    if layer.same:  # MXNet adds as many zeros before the image as after it
        above, left = (size // 2 for size in layer.kernel_size)
    return nn.Conv2D(
        layer.filters,
        layer.kernel_size,
        layer.stride,
        (above, left),
        activation="relu" if layer.relu else None,
        use_bias=layer.bias,
        in_channels=before[-1],
    )


def _dense(layer: layers.Dense, before: Shape, _: Job) -> Any:
    activation = "relu" if layer.relu else None
    flatten = len(before) == 1
    return nn.Dense(layer.units, activation=activation, flatten=flatten, in_units=before[-1])


_BLOCKS: dict[type[Layer], Callable[[Any, Shape, Job], Any]] = {
    layers.Conv: _conv,
    layers.AveragePool: lambda layer, _, __: nn.AvgPool2D(layer.size, layer.step, layer.padding),
    layers.MaxPool: lambda layer, _, __: nn.MaxPool2D(layer.size, layer.step, layer.padding),
    layers.GlobalAveragePool: lambda _, __, ___: _GlobalAveragePool(),
    layers.Flatten: lambda _, __, ___: nn.Flatten(),
    layers.Dense: _dense,
    layers.Relu: lambda _, __, ___: nn.Activation("relu"),
    layers.Dropout: lambda layer, _, __: nn.Dropout(layer.rate),
    layers.BatchNorm: lambda layer, before, _: nn.BatchNorm(
        momentum=layer.momentum, epsilon=layer.epsilon, in_channels=before[-1]
    ),
    layers.Add: lambda _, __, ___: _Add(),
    layers.Concat: lambda _, __, ___: _Concat(),
    layers.Embedding: lambda layer, _, job: nn.Embedding(
        layer.vocabulary, layer.units, sparse_grad=job.sparse
    ),
    layers.LSTM: lambda layer, before, _: _Recurrent(layer, before[-1]),
    layers.GRU: lambda layer, before, _: _Recurrent(layer, before[-1]),
    layers.Positions: lambda _, before, __: _Positions(before),
    layers.LayerNorm: lambda layer, before, _: nn.LayerNorm(
        epsilon=layer.epsilon, in_channels=before[-1]
    ),
    layers.Gelu: lambda _, __, ___: _Gelu(),
    layers.Attention: lambda layer, before, _: _Attention(layer, before),
    layers.Tokens: lambda _, __, ___: _Tokens(),
    SampledWords: lambda layer, before, _: _SampledWords(layer, before[-1]),
}
