"""In MXNet: Gluon blocks, hybridized, with autograd and a Trainer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

from by_hand import CLASSES, HEAD, STAGES, Task


def _sequence(*blocks: Any) -> Any:
    sequence = nn.HybridSequential()
    sequence.add(*blocks)
    return sequence


def _normalized(inputs: int, filters: int, kernel: int, stride: int = 1) -> list[Any]:
    convolution = nn.Conv2D(
        filters, kernel, stride, kernel // 2, use_bias=False, in_channels=inputs
    )
    return [convolution, nn.BatchNorm(in_channels=filters)]


class _Residual(gluon.HybridBlock):  # type: ignore[misc]
    def __init__(self, inputs: int, filters: int, stride: int) -> None:
        super().__init__()
        wide = 4 * filters
        widens = _normalized(inputs, wide, 1, stride) if inputs != wide else []
        self.shortcut = _sequence(*widens)
        self.body = _sequence(
            *(*_normalized(inputs, filters, 1), nn.Activation("relu")),
            *(*_normalized(filters, filters, 3, stride), nn.Activation("relu")),
            *_normalized(filters, wide, 1),
        )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.relu(self.body(x) + self.shortcut(x))


def _resnet50(size: Mapping[str, int]) -> Any:
    inputs = 64 // size["divisor"]
    blocks = [*_normalized(3, inputs, 7, 2), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1)]
    for stage, (number, filters) in enumerate(STAGES):
        narrow = filters // size["divisor"]
        for block in range(number):
            blocks.append(_Residual(inputs, narrow, 2 if stage and not block else 1))
            inputs = 4 * narrow
    return _sequence(*blocks, nn.GlobalAvgPool2D(), nn.Dense(CLASSES, in_units=inputs))


class _Places(gluon.HybridBlock):  # type: ignore[misc]
    def __init__(self, length: int, units: int) -> None:
        super().__init__()
        self.table = self.params.get("table", shape=(1, length, units))

    def hybrid_forward(self, F: Any, x: Any, table: Any) -> Any:
        return F.broadcast_add(x, table)


class _Attention(gluon.HybridBlock):  # type: ignore[misc]
    def __init__(self, length: int, units: int) -> None:
        super().__init__()
        self.heads = max(1, units // HEAD)
        self.size = units // self.heads
        unseen = np.where(np.tri(length), 0.0, -1e30)
        self.unseen = self.params.get_constant("unseen", unseen[None])

    def hybrid_forward(self, F: Any, x: Any, unseen: Any) -> Any:
        x = F.transpose(x.reshape((0, 0, 3, self.heads, self.size)), (2, 0, 3, 1, 4))
        q, k, v = F.split(x.reshape((0, -3, 0, 0)), 3, axis=0, squeeze_axis=True)
        scores = F.broadcast_add(F.batch_dot(q, k, transpose_b=True) / self.size**0.5, unseen)
        attended = F.batch_dot(F.softmax(scores), v).reshape((-4, -1, self.heads, 0, 0))
        return F.transpose(attended, (0, 2, 1, 3)).reshape((0, 0, -3))


class _Decoder(gluon.HybridBlock):  # type: ignore[misc]
    def __init__(self, length: int, units: int) -> None:
        super().__init__()
        self.attention = _sequence(
            nn.LayerNorm(in_channels=units),
            nn.Dense(3 * units, flatten=False, in_units=units),
            _Attention(length, units),
            nn.Dense(units, flatten=False, in_units=units),
        )
        self.inner = _sequence(
            nn.LayerNorm(in_channels=units),
            nn.Dense(4 * units, flatten=False, in_units=units),
            nn.HybridLambda(_gelu),
            nn.Dense(units, flatten=False, in_units=4 * units),
        )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = x + self.attention(x)
        return x + self.inner(x)


def _gelu(F: Any, x: Any) -> Any:
    """By tanh; MXNet's own is by the error function."""
    return 0.5 * x * (1.0 + F.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _gpt(size: Mapping[str, int]) -> Any:
    length, units, vocabulary = size["length"], size["units"], size["vocabulary"]
    return _sequence(
        nn.Embedding(vocabulary, units),
        _Places(length, units),
        *(_Decoder(length, units) for _ in range(size["layers"])),
        nn.LayerNorm(in_channels=units),
        nn.Dense(vocabulary, flatten=False, in_units=units),
        nn.HybridLambda(lambda F, x: F.reshape(x, (-3, 0))),
    )


_NETWORKS = {"resnet50": _resnet50, "gpt_small": _gpt}


def step(task: Task) -> Callable[[], float]:
    """A step of the network, hybridized.

    Args:
        task: what to train.
    """
    net = _NETWORKS[task.network](task.size)
    net.initialize()
    trained = [p for p in net.collect_params().values() if p.grad_req != "null"]
    for parameter, array in zip(trained, task.channels_first, strict=True):
        parameter.set_data(mx.nd.array(array).reshape(parameter.shape))
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for block in (net, loss_of):
        block.hybridize(static_alloc=True, static_shape=True)
    examples = task.examples
    if task.network == "resnet50":
        examples = np.ascontiguousarray(examples.transpose(0, 3, 1, 2))
    examples, labels = (mx.nd.array(x, dtype=x.dtype) for x in (examples, task.labels))
    constants = {"learning_rate": task.learning_rate, "momentum": task.momentum}
    trainer = gluon.Trainer(net.collect_params(), "sgd", constants)

    def train() -> float:
        with autograd.record():
            loss = loss_of(net(examples), labels)
        loss.backward()
        trainer.step(len(task.labels))
        mx.nd.waitall()
        return float(loss.mean().asscalar())

    return train
