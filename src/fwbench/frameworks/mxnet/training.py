"""Training in MXNet: Gluon blocks, autograd, Trainer and DataLoader; hybridized when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn
from numpy.typing import NDArray

from fwbench.frameworks.learner import Job, Learner, Loader, Order, Placed
from fwbench.workloads.models import layers
from fwbench.workloads.models.layers import Shape
from fwbench.workloads.training import DROPOUT_SEED, Adam, Batch, RMSprop


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


def _conv(layer: layers.Conv, before: Shape, _: Job) -> Any:
    padding = layer.kernel // 2 if layer.same else 0
    return nn.Conv2D(
        layer.filters, layer.kernel, padding=padding, activation="relu", in_channels=before[-1]
    )


def _dense(layer: layers.Dense, before: Shape, _: Job) -> Any:
    return nn.Dense(layer.units, activation="relu" if layer.relu else None, in_units=before[0])


def _embedding(layer: layers.Embedding, _: Shape, job: Job) -> Any:
    return nn.Embedding(layer.vocabulary, layer.units, sparse_grad=job.sparse)


_BLOCKS: dict[type[layers.Layer], Callable[[Any, Shape, Job], Any]] = {
    layers.Conv: _conv,
    layers.AveragePool: lambda layer, _, __: nn.AvgPool2D(layer.size),
    layers.MaxPool: lambda layer, _, __: nn.MaxPool2D(layer.size),
    layers.Flatten: lambda _, __, ___: nn.Flatten(),
    layers.Dense: _dense,
    layers.Dropout: lambda layer, _, __: nn.Dropout(layer.rate),
    layers.Embedding: _embedding,
    layers.LSTM: lambda layer, before, _: _LastOutput(before[-1], layer.units),
}


def _adam(constants: Adam, job: Job) -> dict[str, Any]:
    return {
        "learning_rate": constants.learning_rate,
        "beta1": constants.beta_1,
        "beta2": constants.beta_2,
        "epsilon": constants.epsilon,
        "lazy_update": job.sparse,
    }


def _rmsprop(constants: RMSprop, _: Job) -> dict[str, Any]:
    return {
        "learning_rate": constants.learning_rate,
        "gamma1": constants.rho,
        "epsilon": constants.epsilon,
    }


_OPTIMIZERS: dict[type[Any], tuple[str, Callable[[Any, Job], dict[str, Any]]]] = {
    Adam: ("adam", _adam),
    RMSprop: ("rmsprop", _rmsprop),
}


def _hybridized(*blocks: Any) -> None:
    for block in blocks:
        block.hybridize(static_alloc=True, static_shape=True)  # again each time


#: The executions that can train, each with what it does to the network and to the loss.
_EXECUTIONS: dict[str, Callable[..., None]] = {
    "eager": lambda *_: None,
    "hybridize": _hybridized,
}


class _Batches(Loader):
    def __init__(self, job: Job, context: Any, arrays: Batch, steps: int) -> None:
        self._context = context
        self._order = Order(steps * job.batch)
        self._loader = gluon.data.DataLoader(
            gluon.data.ArrayDataset(*arrays),
            batch_size=job.batch,
            sampler=self._order,
            num_workers=job.workers,
        )

    def set_order(self, order: NDArray[Any]) -> None:
        self._order.indices = order.tolist()

    def __iter__(self) -> Iterator[Placed]:
        for x, y in self._loader:
            yield x.as_in_context(self._context), y.as_in_context(self._context)


class MXNetLearner(Learner):
    """A Gluon network that is trained by ``autograd`` and a ``Trainer``."""

    executions = tuple(_EXECUTIONS)

    def __init__(self, job: Job, context: Any) -> None:
        super().__init__(job)
        self._context = context
        self._net = nn.HybridSequential()
        for layer, before in layers.shapes(job.training.layers, job.training.shape):
            self._net.add(_BLOCKS[type(layer)](layer, before, job))
        self._net.initialize(ctx=context)
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self._dropouts = [
            (block, layer.rate)
            for block, layer in zip(self._net, job.training.layers, strict=True)
            if isinstance(layer, layers.Dropout)
        ]
        self._compile()

    def _compile(self) -> None:
        _EXECUTIONS[self.job.execution](self._net, self._loss)

    def step(self, examples: Any, labels: Any) -> Any:
        """``record``, ``backward`` and the trainer's step; a loss for each example."""
        with autograd.record():
            loss = self._loss(self._net(examples), labels)
        loss.backward()
        self._trainer.step(self.job.batch)
        return loss

    def reset(self, *, exact: bool) -> None:
        """Weights in place, so that cached operators stay; a new trainer."""
        # Not by record(train_mode=False): MXNet's dropout has no gradient then.
        rates = [0.0 if exact else rate for _, rate in self._dropouts]
        if rates != [block._rate for block, _ in self._dropouts]:  # noqa: SLF001 (no other way)
            for (block, _), rate in zip(self._dropouts, rates, strict=True):
                block._rate = rate  # noqa: SLF001 (see above)
            self._compile()
        training = self.job.training
        parameters = self._net.collect_params()
        arrays = layers.channels_first(training.layers, training.shape, training.initial())
        for parameter, array in zip(parameters.values(), arrays, strict=True):
            parameter.set_data(mx.nd.array(array, ctx=self._context, dtype="float32"))
        mx.random.seed(DROPOUT_SEED)
        name, constants = _OPTIMIZERS[type(training.optimizer)]
        self._trainer = gluon.Trainer(parameters, name, constants(training.optimizer, self.job))

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the trainer."""
        self._trainer.set_learning_rate(learning_rate)

    def weights(self) -> Iterator[NDArray[Any]]:
        """Those that have a gradient."""
        trained = (p for p in self._net.collect_params().values() if p.grad_req != "null")
        return (parameter.data().asnumpy() for parameter in trained)

    def place(self, batch: Batch) -> Placed:
        """The batch by ``mx.nd.array``, channels first."""
        x, y = _in_layout(batch)
        return (
            mx.nd.array(x, ctx=self._context, dtype=x.dtype),
            mx.nd.array(y, ctx=self._context, dtype=y.dtype),
        )

    def loader(self, batch: Batch, steps: int) -> Loader:
        """``DataLoader`` over an ``ArrayDataset``: example by example, then stacked."""
        return _Batches(self.job, self._context, _in_layout(batch), steps)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The mean over the examples of each step."""
        return np.asarray([loss.asnumpy().mean(dtype=np.float64) for loss in losses])

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """Outside ``record``, where dropout is off."""
        x, _ = self.place((examples, np.zeros(0, np.int32)))
        return cast("NDArray[Any]", self._net(x).asnumpy().astype(np.float64))

    def notes(self) -> dict[str, Any]:
        """Where its optimiser adds epsilon."""
        if isinstance(self.job.training.optimizer, RMSprop):
            return {"epsilon_placement": "added to the mean square"}
        return {
            "epsilon_placement": "added to the root of the second moment",
            "update": "lazy" if self.job.sparse else "dense",
        }


def _in_layout(batch: Batch) -> Batch:
    x, y = batch
    if x.ndim > 2:  # noqa: PLR2004 (images, with their batch)
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    return x, y
