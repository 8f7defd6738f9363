"""Training in MXNet: Gluon blocks, autograd, Trainer and DataLoader; hybridized when asked for."""

import copy
import itertools
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from numpy.typing import NDArray

from fwbench.frameworks.learner import (
    EPSILON_AS_DEFINED,
    ConvertedPredictor,
    Dropouts,
    Job,
    Learner,
    Loader,
    Order,
    Placed,
)
from fwbench.frameworks.mxnet import openmp, planning
from fwbench.frameworks.mxnet.layers import Network
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import DROPOUT_SEED, SGD, Adam, Batch, Optimizer, RMSprop
from fwbench.workloads.photos import CROP, MEAN, RESIZED, STD, PhotoJob, PhotoLoader

T = TypeVar("T")


def _hybridized(*blocks: Any) -> None:
    for block in blocks:
        block.hybridize(static_alloc=True, static_shape=True)  # again each time


#: The executions that can train, each with what it does to the network and to the loss.
_EXECUTIONS: dict[str, Callable[..., None]] = {"eager": lambda *_: None, "hybridize": _hybridized}


class _Batches(Loader):
    def __init__(self, job: Job, context: Any, arrays: Batch, steps: int) -> None:
        self._context = context
        self._label_for_each_token = bool(job.training.labels_shape)
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
            labels = y.reshape(-1) if self._label_for_each_token else y
            yield x.as_in_context(self._context), labels.as_in_context(self._context)


def photo_loader(job: PhotoJob) -> PhotoLoader:
    """``ImageRecordIter`` over files packed as by ``im2rec``; it always loads ahead in a thread."""
    index, records = (str(job.paths[0].with_suffix(suffix)) for suffix in (".idx", ".rec"))

    def pack() -> None:
        file = mx.recordio.MXIndexedRecordIO(index, records, "w")
        for label, path in enumerate(job.paths):
            header = mx.recordio.IRHeader(0, float(label), label, 0)
            file.write_idx(label, mx.recordio.pack(header, path.read_bytes()))
        file.close()

    pack()
    cut: dict[str, Any] = {"resize": RESIZED}
    if job.augmented:
        cut = {"rand_crop": True, "rand_mirror": True, "shuffle": True}
    for colour, mean, std in zip("rgb", MEAN, STD, strict=True):
        cut |= {f"mean_{colour}": mean, f"std_{colour}": std}
    loader = mx.io.ImageRecordIter(
        path_imgidx=index,
        path_imgrec=records,
        data_shape=(3, CROP, CROP),
        batch_size=job.batch,
        preprocess_threads=max(1, job.workers),
        verbose=False,
        **cut,
    )

    def batches() -> Iterator[Placed]:
        loader.reset()
        return ((batch.data[0], batch.label[0]) for batch in loader)

    return PhotoLoader(batches, "OpenCV", channels_first=True, pack=pack)


class MXNetLearner(Learner):
    """A Gluon network that is trained by ``autograd`` and a ``Trainer``."""

    executions = tuple(_EXECUTIONS)
    epsilon_placement = EPSILON_AS_DEFINED
    sparse_update = "lazy"

    def __init__(self, job: Job, context: Any) -> None:
        super().__init__(job)
        self._context = self._labels_context = context
        self._net = self._network()
        self._labels = job.batch * job.training.labels_per_example
        self._net.initialize(ctx=context)
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self._dropouts = Dropouts(self._net.blocks)
        self._compile()

    def _network(self) -> Any:
        return Network(self.job.training.graph, self.job)

    def _compile(self) -> None:
        _EXECUTIONS[self.job.execution](self._net, self._loss)

    def step(self, examples: Any, labels: Any) -> Any:
        """``record``, ``backward`` and the trainer's step; a loss for each example."""
        with autograd.record():
            loss = self._loss(self._net(examples), labels)
        loss.backward()
        self._trainer.step(self._labels)
        return loss

    def reset(self, *, exact: bool) -> None:
        """Weights in place, so that cached operators stay; a new trainer."""
        self._begin(dropout=not exact)
        mx.random.seed(DROPOUT_SEED)
        job = self.job
        self._trainer = self._trainer_of(new_optimizer(job.training.optimizer, lazy=job.sparse))

    def _trainer_of(self, optimizer: Any) -> Any:
        return gluon.Trainer(self._net.collect_params(), optimizer, kvstore="device")

    def _begin(self, *, dropout: bool) -> None:
        # Not by record(train_mode=False): MXNet's dropout has no gradient then.
        if self._dropouts.switch(on=dropout):
            self._compile()
        for parameter, array in self._in_layout(self.job.training.initial()):
            parameter.set_data(
                openmp.copied(mx.nd.array, array, ctx=self._context, dtype="float32")
            )

    def _in_layout(self, of_nodes: Sequence[Arrays]) -> Iterator[tuple[Any, NDArray[Any]]]:
        converted = self.job.training.graph.channels_first(of_nodes)
        for block, arrays in zip(self._net.blocks, converted, strict=True):
            given = block.collect_params().values()
            settable = [p for p in given if not isinstance(p, gluon.Constant)]
            yield from zip(settable, [*arrays, *_averages(block)], strict=True)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The network outside ``record``; converted by ``amp`` for a narrower dtype."""
        answer: Callable[[Any], Any] = self.in_use()
        if self.job.dtype != "float32":
            answer = self._converted(examples)
        return partial(answer, examples)

    def model_bytes(self) -> int:
        """By ``save_parameters``."""
        return saved_bytes(self._net)

    def in_use(self) -> Any:
        """The network with its initial weights, without dropout."""
        self._begin(dropout=False)
        return self._net

    def _converted(self, examples: Any) -> Any:
        """The hybridized network with casts around the operators that amp lists for the dtype."""
        from mxnet.contrib import amp

        self._net(examples)  # amp converts the graph of the last call
        with warnings.catch_warnings(action="ignore"):  # that it has to infer the input's type
            converted = amp.convert_hybrid_block(self._net, self.job.dtype, ctx=self._context)
        _EXECUTIONS[self.job.execution](converted)
        return converted

    def forward_backward(self, examples: Any, labels: Any) -> Callable[[], Any]:
        """``record`` and ``backward``; each gradient has its array, which every call writes."""
        self._begin(dropout=False)
        gradients = [parameter.grad() for parameter in self._parameters]
        return partial(self._differentiated, gradients, examples, labels)

    def _differentiated(self, gradients: Sequence[Any], examples: Any, labels: Any) -> Any:
        with autograd.record():
            loss = self._loss(self._net(examples), labels).mean()
        loss.backward()
        return loss, gradients

    @property
    def _parameters(self) -> list[Any]:
        every = (p for block in self._net.blocks for p in block.collect_params().values())
        return [parameter for parameter in every if parameter.grad_req != "null"]

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        """Channels first."""
        return [array for p, array in self._in_layout(of_nodes) if p.grad_req != "null"]

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the trainer."""
        self._trainer.set_learning_rate(learning_rate)

    def save(self, folder: Path) -> None:
        """``save_parameters``, and the trainer's ``save_states``."""
        self._net.save_parameters(str(folder / "net.params"))
        self._trainer.save_states(str(folder / "trainer.states"))

    def restore(self, folder: Path) -> None:
        """``load_parameters``, and ``load_states``."""
        self._net.load_parameters(str(folder / "net.params"), ctx=self._context)
        self._trainer.load_states(str(folder / "trainer.states"))

    def weights(self) -> Iterator[NDArray[Any]]:
        """The parameters that have a gradient."""
        return (openmp.copied(parameter.data().asnumpy) for parameter in self._parameters)

    def placement(self) -> Mapping[str, int]:
        """By the contexts of each parameter's arrays."""
        numbers: Counter[str] = Counter()
        for array in itertools.chain.from_iterable(p.list_data() for p in self._parameters):
            numbers[f"{array.context.device_type}:{array.context.device_id}"] += array.size
        return numbers

    def place(self, batch: Batch) -> Placed:
        """The batch by ``mx.nd.array``, channels first."""
        x, y = _in_layout(batch)
        return (
            openmp.copied(mx.nd.array, x, ctx=self._context, dtype=x.dtype),
            openmp.copied(mx.nd.array, y, ctx=self._labels_context, dtype=y.dtype),
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
        return openmp.copied(self._net(x).asnumpy).astype(np.float64)

    def planned_bytes(self, *, training: bool) -> int | None:
        """Bytes planned for a hybridized network, in one context."""
        return self._plan(planning.planned_bytes, training=training)

    def planned_by_strategy(self, *, training: bool) -> dict[str, int] | None:
        """Bytes for a hybridized network; two strategies are MXNet's own, and two computed."""
        return self._plan(planning.by_strategy, training=training)

    def _plan(self, plan: Callable[..., T], *, training: bool) -> T | None:
        if self.job.execution != "hybridize" or len(self.job.devices) > 1:
            return None
        (batch,) = self.job.training.check_batches(self.job.batch, 1)
        examples, labels = self.place(batch)
        arrays = {"examples": examples}
        graph = self._net(mx.sym.var("examples"))
        if training:
            arrays["labels"] = labels
            graph = self._loss(graph, mx.sym.var("labels"))
        return plan(graph, arrays, training=training, constant=arrays)


def saved_bytes(net: Any) -> int:
    """Size of the file of a network's parameters; MXNet writes no other kind of files."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "net.params"
        net.save_parameters(str(file))
        return file.stat().st_size


def _averages(block: Any) -> list[NDArray[Any]]:
    """Initial values of the moving averages of batch normalization: means, then variances."""
    if not isinstance(block, gluon.nn.BatchNorm):
        return []
    channels = block.gamma.shape
    return [np.zeros(channels), np.ones(channels)]


def _in_layout(batch: Batch) -> Batch:
    x, y = batch
    if x.ndim > 2:  # noqa: PLR2004 (images, with their batch)
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    return x, y


def new_optimizer(constants: Optimizer, *, lazy: bool = False) -> Any:
    """MXNet's own, which adds epsilon where the definition does.

    Args:
        lazy: whether Adam passes over rows without a gradient where gradients are sparse.
    """
    return _OPTIMIZERS[type(constants)](constants, lazy)


class _RMSprop(mx.optimizer.RMSProp):  # type: ignore[misc]
    """MXNet's, whose mean squares are float32 in every dtype of the weights."""

    def create_state(self, _: int, weight: Any) -> tuple[Any]:
        """The mean squares of a weight, in its dtype."""
        return (mx.nd.zeros_like(weight),)


_OPTIMIZERS: dict[type[Any], Callable[[Any, bool], Any]] = {
    Adam: lambda adam, lazy: mx.optimizer.Adam(
        adam.learning_rate, adam.beta_1, adam.beta_2, adam.epsilon, lazy_update=lazy
    ),
    RMSprop: lambda rmsprop, _: _RMSprop(
        rmsprop.learning_rate, rmsprop.rho, epsilon=rmsprop.epsilon
    ),
    SGD: lambda sgd, _: mx.optimizer.SGD(sgd.momentum, learning_rate=sgd.learning_rate),
}


class _Chain(gluon.Block):  # type: ignore[misc]
    """Networks one after the other, each in a context."""

    def __init__(self, job: Job, contexts: Sequence[Any]) -> None:
        super().__init__()
        graphs = job.training.graph.divided(len(contexts))
        self.parts = [
            (context, Network(graph, job)) for context, graph in zip(contexts, graphs, strict=True)
        ]
        for _, network in self.parts:
            self.register_child(network)
        self.blocks = [block for _, network in self.parts for block in network.blocks]

    def initialize(self, **_: Any) -> None:
        for context, network in self.parts:
            network.initialize(ctx=context)

    def forward(self, x: Any) -> Any:
        for context, network in self.parts:
            x = network(x.as_in_context(context))
        return x


class _Trainers:
    """A trainer for each network, as one: a trainer takes parameters of one context.

    Args:
        optimizer: with its constants; each trainer has one of its own, which counts its updates.
    """

    def __init__(self, networks: Sequence[Any], optimizer: Any) -> None:
        self._trainers = [
            gluon.Trainer(network.collect_params(), copy.deepcopy(optimizer))
            for network in networks
        ]

    def step(self, batch: int) -> None:
        for trainer in self._trainers:
            trainer.step(batch)

    def set_learning_rate(self, learning_rate: float) -> None:
        for trainer in self._trainers:
            trainer.set_learning_rate(learning_rate)


class DividedLearner(MXNetLearner):
    """Blocks in several contexts, each hybridized by itself and with a trainer of its own."""

    def __init__(self, job: Job, contexts: Sequence[Any]) -> None:
        self._contexts = contexts
        super().__init__(job, contexts[0])
        self._labels_context = contexts[-1]

    def _network(self) -> Any:
        return _Chain(self.job, self._contexts)

    def _trainer_of(self, optimizer: Any) -> Any:
        return _Trainers([network for _, network in self._net.parts], optimizer)


class SplittingLearner(MXNetLearner):
    """Parameters in each context, for parts of a batch; the trainer's KVStore adds gradients up."""

    def __init__(self, job: Job, contexts: Sequence[Any]) -> None:
        super().__init__(job, contexts[0])
        self._net.collect_params().reset_ctx(contexts)
        self._split = partial(gluon.utils.split_and_load, ctx_list=contexts)

    def place(self, batch: Batch) -> Placed:
        """A part in each context, by ``split_and_load``."""
        examples, labels = map(self._split, super().place(batch))
        return examples, labels

    def step(self, examples: Any, labels: Any) -> Any:
        """The usual step on each part, and one update; the losses of each part's examples."""
        with autograd.record():
            losses = [self._loss(self._net(x), y) for x, y in zip(examples, labels, strict=True)]
        autograd.backward(losses)
        self._trainer.step(self._labels)
        return losses

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The mean over the equal parts of each step."""
        return np.asarray([super(SplittingLearner, self).losses(parts).mean() for parts in losses])

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """Answers to each part, one after the other."""
        x, _ = super().place((examples, np.zeros(0, np.int32)))
        answers = [openmp.copied(self._net(part).asnumpy) for part in self._split(x)]
        return np.concatenate(answers, dtype=float)


class MXNetInt8(ConvertedPredictor):
    """A hybridized network whose activations and weights are int8, with oneDNN's operators."""

    executions = ("hybridize",)

    def __init__(self, job: Job, context: Any) -> None:
        from mxnet.contrib import quantization

        super().__init__(job)
        self._learner = MXNetLearner(job, context)
        examples = self.calibration_examples()
        with warnings.catch_warnings(action="ignore"):  # that types of inputs have to be found out
            self._net = quantization.quantize_net_v2(
                self._learner.in_use(),
                quantized_dtype="auto",
                calib_mode="naive",
                calib_data=mx.io.NDArrayIter(examples, batch_size=job.batch),
                ctx=context,
            )
        self._net.hybridize(static_alloc=True, static_shape=True)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The quantized network outside ``record``."""
        return partial(self._net, examples)

    def model_bytes(self) -> int:
        """By ``save_parameters``."""
        return saved_bytes(self._net)
