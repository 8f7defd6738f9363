"""The layers of a network as Gluon blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet import gluon
from mxnet.gluon import nn, rnn

from fwbench.frameworks.learner import Job
from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.models.layer import Layer, Shape


class Network(gluon.HybridBlock):  # type: ignore[misc]
    """A network of blocks.

    Args:
        graph: of the network.
        job: what to train, and how.
    """

    def __init__(self, graph: Graph, job: Job) -> None:
        super().__init__()
        self._graph = graph
        self.blocks = [
            _BLOCKS[type(node.layer)](node.layer, node.shapes[0], job) for node in graph.nodes
        ]
        for block in self.blocks:
            self.register_child(block)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The logits of a batch."""
        return self._graph.evaluate(self.blocks, x)


class _Add(gluon.HybridBlock):  # type: ignore[misc]
    """The sum of two arrays or more."""

    def hybrid_forward(self, F: Any, x: Any, *others: Any) -> Any:
        """Arrays of one shape to one of that shape."""
        for other in others:
            x = x + other
        return x


class _Concat(gluon.HybridBlock):  # type: ignore[misc]
    """Images whose channels lie one after the other."""

    def hybrid_forward(self, F: Any, x: Any, *others: Any) -> Any:
        """(batch, channels, ...) each to (batch, all channels, ...)."""
        return F.concat(x, *others, dim=1)


class _LastOutput(gluon.HybridBlock):  # type: ignore[misc]
    """An LSTM of which the last output is the result."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        with self.name_scope():
            self.lstm = rnn.LSTM(units, layout="NTC", input_size=inputs)
        # MXNet has two biases, whose sum counts: training both would double the step.
        self.lstm.l0_h2h_bias.grad_req = "null"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """(batch, length, inputs) to (batch, units)."""
        return F.squeeze(F.slice_axis(self.lstm(x), axis=1, begin=-1, end=None), axis=1)


class _GlobalAveragePool(nn.HybridSequential):  # type: ignore[misc]
    """The mean of each channel."""

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


def _average_pool(layer: layers.AveragePool, _: Shape, __: Job) -> Any:
    return nn.AvgPool2D(layer.size, layer.step, layer.padding)


def _max_pool(layer: layers.MaxPool, _: Shape, __: Job) -> Any:
    return nn.MaxPool2D(layer.size, layer.step, layer.padding)


def _dense(layer: layers.Dense, before: Shape, _: Job) -> Any:
    activation = "relu" if layer.relu else None
    flatten = len(before) == 1
    return nn.Dense(layer.units, activation=activation, flatten=flatten, in_units=before[-1])


def _batch_norm(layer: layers.BatchNorm, before: Shape, _: Job) -> Any:
    return nn.BatchNorm(momentum=layer.momentum, epsilon=layer.epsilon, in_channels=before[-1])


def _embedding(layer: layers.Embedding, _: Shape, job: Job) -> Any:
    return nn.Embedding(layer.vocabulary, layer.units, sparse_grad=job.sparse)


_BLOCKS: dict[type[Layer], Callable[[Any, Shape, Job], Any]] = {
    layers.Conv: _conv,
    layers.AveragePool: _average_pool,
    layers.MaxPool: _max_pool,
    layers.GlobalAveragePool: lambda _, __, ___: _GlobalAveragePool(),
    layers.Flatten: lambda _, __, ___: nn.Flatten(),
    layers.Dense: _dense,
    layers.Relu: lambda _, __, ___: nn.Activation("relu"),
    layers.Dropout: lambda layer, _, __: nn.Dropout(layer.rate),
    layers.BatchNorm: _batch_norm,
    layers.Add: lambda _, __, ___: _Add(),
    layers.Concat: lambda _, __, ___: _Concat(),
    layers.Embedding: _embedding,
    layers.LSTM: lambda layer, before, _: _LastOutput(before[-1], layer.units),
}
