"""Training in TensorFlow: Keras layers with a step of one's own and tf.data; Keras' fit as well."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

# Keras could be asked to compute with another framework.
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.learner import (
    EPSILON_AS_DEFINED,
    ConvertedPredictor,
    Dropouts,
    Job,
    Learner,
    Loader,
    Placed,
    averages_kept,
)
from fwbench.frameworks.tensorflow.layers import build, segments
from fwbench.terms.names import DEFAULT_DTYPE, INT8
from fwbench.workloads.models.gradients import LOSS_SCALE
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import SGD, Adam, Batch, Optimizer, RMSprop
from fwbench.workloads.photos import CROP, MEAN, RESIZED, STD, PhotoJob, PhotoLoader

#: The executions that can train, each with what it makes of the step; and see :class:`KerasFit`.
EXECUTIONS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda step: step,
    "graph": tf.function,
    "xla": partial(tf.function, jit_compile=True),
}

_POLICIES = {"bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


class _Batches(Loader):
    """Batches gathered by index; loaded by threads and prefetched where workers are asked for."""

    def __init__(self, job: Job, batch: Batch, steps: int) -> None:
        with tf.device("cpu"):
            x, y = (tf.constant(part) for part in batch)
            self._order = tf.Variable(tf.zeros(steps * job.batch, tf.int64), trainable=False)

        def take(start: Any) -> Placed:
            chosen = self._order[start : start + job.batch]
            labels = tf.gather(y, chosen)
            for_each_token = bool(job.training.labels_shape)
            return tf.gather(x, chosen), tf.reshape(labels, [-1]) if for_each_token else labels

        starts = tf.data.Dataset.range(0, steps * job.batch, job.batch)
        self.dataset = _ahead(starts.map(take, num_parallel_calls=job.workers or None), job.workers)

    def set_order(self, order: NDArray[Any]) -> None:
        self._order.assign(order)

    def __iter__(self) -> Iterator[Placed]:
        return iter(self.dataset)


def _ahead(dataset: Any, workers: int) -> Any:
    """Batches, ahead if there are workers; with nothing to tune, and no thread that would."""
    # It sleeps 10 ms, 20 ms, 40 ms and so on, and the end of an epoch may wait for it: epochs of
    # 5.7 s took 10.23, others 20.47 or 40.95.
    options = tf.data.Options()
    options.autotune.enabled = False
    return (dataset.prefetch(workers) if workers else dataset).with_options(options)


def photo_loader(job: PhotoJob) -> PhotoLoader:
    """``tf.data`` over files; ``dct_method`` has its default, which is fast and inexact."""
    cut = _augmented if job.augmented else _centred

    def load(path: Any, label: Any) -> Placed:
        image = tf.ensure_shape(cut(tf.io.read_file(path)), (CROP, CROP, 3))
        return (tf.cast(image, tf.float32) - MEAN) / STD, label

    files = tf.data.Dataset.from_tensor_slices(([*map(str, job.paths)], range(len(job.paths))))
    files = files.shuffle(len(job.paths)) if job.augmented else files
    photos = files.map(load, num_parallel_calls=job.workers or None)
    dataset = _ahead(photos.batch(job.batch), job.workers)
    return PhotoLoader(lambda: iter(dataset), "libjpeg-turbo (INTEGER_FAST)")


def _centred(content: Any) -> Any:
    image = tf.io.decode_jpeg(content, channels=3)
    sides = tf.shape(image)[:2] * RESIZED // tf.reduce_min(tf.shape(image)[:2])
    top, left = tf.unstack((sides - CROP) // 2)
    return tf.image.crop_to_bounding_box(tf.image.resize(image, sides), top, left, CROP, CROP)


def _augmented(content: Any) -> Any:
    sides = tf.unstack(tf.io.extract_jpeg_shape(content)[:2])
    top, left = (tf.random.uniform((), 0, side - CROP + 1, tf.int32) for side in sides)
    image = tf.io.decode_and_crop_jpeg(content, [top, left, CROP, CROP], channels=3)
    return tf.image.random_flip_left_right(image)


class TensorFlowLearner(Learner):
    """TensorFlow's way to train: a step of one's own, eager, as a graph, or compiled by XLA."""

    executions = tuple(EXECUTIONS)
    epsilon_placement = EPSILON_AS_DEFINED
    sparse_update = "slices"  # keras.src.backend.tensorflow.sparse: `square` is of each slice

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        policy = _POLICIES.get(job.dtype, job.dtype)
        layers = self._layers(policy)
        # Keras orders variables by the depth of their layers.
        self.variables = [variable for layer in layers for variable in layer.trainable_variables]
        constants = job.training.optimizer
        self.rule = self.optimizer = new_optimizer(constants)
        self._scaled: Callable[[Any], Any] = lambda loss: loss
        if job.dtype == "float16":  # whose gradients would vanish otherwise
            self.optimizer = keras.optimizers.LossScaleOptimizer(self.rule)
            self._scaled = self.optimizer.scale_loss
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self._dropouts = Dropouts(layers)
        self._averages = [
            (variable, np.full(variable.shape, start))
            for layer in layers
            if isinstance(layer, keras.layers.BatchNormalization)
            for variable, start in ((layer.moving_mean, 0.0), (layer.moving_variance, 1.0))
        ]
        self._answer = tf.function(partial(self.model, training=False), reduce_retracing=True)
        self.build()

    def _layers(self, policy: Any) -> list[Any]:
        """The layers of the network, in their order; makes the model of them."""
        job = self.job
        tokens = job.training.vocabulary is not None
        examples = keras.Input(job.training.shape, dtype="int32" if tokens else "float32")
        logits, of_nodes = build(job.training.graph, examples, policy)
        self.model = keras.Model(examples, logits)
        self._trained = partial(self.model, training=True)
        if job.recompute:
            self._trained = partial(_recomputing, segments(job.training.graph, examples, of_nodes))
        return [layer for of_node in of_nodes for layer in of_node]

    def build(self) -> None:
        """Compile the step, which reads the rates of dropout when it is traced."""
        self._step = EXECUTIONS[self.job.execution](self._train)

    def _differentiated(self, variables: Sequence[Any], examples: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = self.loss(labels, self._trained(examples))
            scaled = self._scaled(loss)
        gradients = tape.gradient(scaled, variables)
        if not self.job.sparse:
            # Those of embeddings come as slices.
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return loss, gradients

    def _train(self, examples: Any, labels: Any) -> Any:
        variables = self.model.trainable_variables
        loss, gradients = self._differentiated(variables, examples, labels)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step by ``GradientTape`` and ``apply_gradients``."""
        return self._step(examples, labels)

    def reset(self, *, exact: bool) -> None:
        """Variables in place, so that compiled code stays where nothing is dropped out."""
        if not self.optimizer.built:  # not for a network that is never updated
            self.optimizer.build(self.model.trainable_variables)
        clear(self.optimizer)
        if self.job.dtype == "float16":
            self.optimizer.dynamic_scale.assign(LOSS_SCALE)
        self.set_learning_rate(self.job.training.optimizer.learning_rate)
        self._begin(dropout=not exact)

    def _begin(self, *, dropout: bool) -> None:
        arrays = self.trained(self.job.training.initial())
        for variable, array in zip(self.variables, arrays, strict=True):
            variable.assign(array)
        for variable, array in self._averages:
            variable.assign(array)
        if self._dropouts.switch(on=dropout):
            self.build()

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The model as a function, called with ``training=False``."""
        answer = EXECUTIONS[self.job.execution](partial(self.in_use(), training=False))
        return partial(answer, examples)

    def in_use(self) -> Any:
        """The model with its initial weights, without dropout."""
        self._begin(dropout=False)
        return self.model

    def model_bytes(self) -> int:
        """Keras' file."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.keras"
            self.model.save(file)
            return file.stat().st_size

    def forward_backward(self, examples: Any, labels: Any) -> Callable[[], Any]:
        """A ``GradientTape`` around the model, all of it inside the graph where there is one."""
        self._begin(dropout=False)
        differentiated = partial(self._differentiated, self.variables)
        return partial(EXECUTIONS[self.job.execution](differentiated), examples, labels)

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        """The arrays unchanged: Keras has the layouts of the definitions."""
        return [array for arrays in of_nodes for array in arrays]

    def set_learning_rate(self, learning_rate: float) -> None:
        """A variable of the optimiser."""
        self.optimizer.learning_rate = learning_rate

    def save(self, folder: Path) -> None:
        """``tf.train.Checkpoint``, as of a training loop of one's own."""
        self._checkpoint.write(str(folder / "checkpoint"))

    def restore(self, folder: Path) -> None:
        """The same; it must use all that is in the file."""
        self._checkpoint.read(str(folder / "checkpoint")).assert_consumed()

    @property
    def _checkpoint(self) -> Any:
        return tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)

    def weights(self) -> Iterator[NDArray[Any]]:
        """The values of all trainable variables."""
        return (variable.numpy() for variable in self.variables)

    def placement(self) -> Mapping[str, int]:
        """By the device of each variable's own value, or of each of a mirrored one."""
        numbers: Counter[str] = Counter()
        for variable in (v.value for v in self.variables):
            for value in getattr(variable, "values", [variable]):
                where = tf.DeviceSpec.from_string(value.device)
                size = value.shape.num_elements()
                numbers[f"{where.device_type.lower()}:{where.device_index}"] += size
        return numbers

    def place(self, batch: Batch) -> Placed:
        """``tf.constant``; the device is the scope's."""
        examples, labels = batch
        return tf.constant(examples), tf.constant(labels)

    def loader(self, batch: Batch, steps: int) -> Loader:
        """``tf.data`` over tensors, gathered batch by batch."""
        return _Batches(self.job, batch, steps)

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """Answers of a graph in every execution: it is not timed."""
        answer = self._answer(tf.constant(examples))
        return cast("NDArray[Any]", tf.cast(answer, tf.float64).numpy())


def _recomputing(models: Sequence[Any], x: Any) -> Any:
    """The logits of a batch in training, by ``tf.recompute_grad``."""
    *recomputed, last = models
    for model in recomputed:
        x = tf.recompute_grad(_passes(model))(x)
    return last(x, training=True)


def _passes(model: Any) -> Callable[[Any], Any]:
    """A model that is called for a forward pass, and then in the backward pass."""
    contexts: Iterator[AbstractContextManager[None]]
    norms = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    contexts = iter([nullcontext(), averages_kept(norms, momentum=1.0)])

    def call(x: Any) -> Any:
        with next(contexts):
            return model(x, training=True)

    return call


class KerasFit(TensorFlowLearner):
    """Keras' own loop: ``compile`` and ``fit`` with what they do by default."""

    executions = ("fit",)

    def build(self) -> None:
        """``compile``, which decides on XLA by itself."""
        self.model.compile(self.optimizer, self.loss)

    def step(self, examples: Any, labels: Any) -> Any:
        """``train_on_batch``, which has the training function of ``fit``."""
        return self.model.train_on_batch(examples, labels)

    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        """``fit`` over one epoch, whose logs hold the mean loss so far. The loader has shuffled."""
        means: dict[int, float] = {}
        watching = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda step, logs: means.update({step: logs["loss"]})
        )
        # Read in threads next to the training, as `fit` does with its logs in any case.
        watching.async_safe = True
        dataset = cast("_Batches", batches).dataset
        self.model.fit(dataset, shuffle=False, verbose=0, callbacks=[watching])
        sums = [means[step] * (step + 1) for step in sorted(means)]
        with np.errstate(invalid="ignore"):  # after an infinite loss
            return cast("Sequence[Any]", np.diff(sums, prepend=0.0))

    def notes(self) -> dict[str, Any]:
        """The notes of every learner, and whether ``fit`` compiles by XLA."""
        return {**super().notes(), "jit_compile": bool(self.model.jit_compile)}


def new_optimizer(constants: Optimizer) -> Any:
    """Keras' own, which adds epsilon where the definition does."""
    return _OPTIMIZERS[type(constants)](constants)


def clear(optimizer: Any) -> None:
    """Set all that an optimiser keeps to zero, but for the learning rate."""
    for variable in optimizer.variables:
        if variable is not optimizer.learning_rate:
            variable.assign(np.zeros(variable.shape, variable.dtype))


_OPTIMIZERS: dict[type[Any], Callable[[Any], Any]] = {
    Adam: lambda adam: keras.optimizers.Adam(
        adam.learning_rate, adam.beta_1, adam.beta_2, adam.epsilon
    ),
    RMSprop: lambda rmsprop: keras.optimizers.RMSprop(
        rmsprop.learning_rate, rmsprop.rho, epsilon=rmsprop.epsilon
    ),
    SGD: lambda sgd: keras.optimizers.SGD(sgd.learning_rate, sgd.momentum),
}


class _Chain(keras.Model):  # type: ignore[misc]
    """Models one after the other, each with the name of its device."""

    def __init__(self, parts: Sequence[tuple[str, Any]]) -> None:
        super().__init__(name="divided")
        self.parts = parts
        self.models = [model for _, model in parts]  # Keras finds their variables here

    def call(self, x: Any, training: bool = False) -> Any:
        for device, model in self.parts:
            with tf.device(device):
                x = model(x, training=training)
        return x


class DividedLearner(TensorFlowLearner):
    """Layers under ``tf.device``, and a ``GradientTape`` for each device.

    What a tape differentiates is not placed as what it recorded: so the gradients of each device's
    layers are asked for on it.
    """

    executions = ("eager", "graph")
    model: Any

    def _layers(self, policy: Any) -> list[Any]:
        training, parts, layers = self.job.training, [], []
        tokens = training.vocabulary is not None
        dtype = "int32" if tokens else "float32"
        for device, graph in zip(
            self.job.devices, training.graph.divided(self.job.model_parallel), strict=True
        ):
            with tf.device(device):
                x = keras.Input(graph.shape, dtype=dtype)
                result, of_nodes = build(graph, x, policy)
                parts.append((device, keras.Model(x, result)))
            layers += [layer for of_node in of_nodes for layer in of_node]
            dtype = result.dtype
        self.model = _Chain(parts)
        return layers

    def _differentiated(self, variables: Sequence[Any], examples: Any, labels: Any) -> Any:
        x, passes = examples, []
        for device, model in self.model.parts:
            with tf.device(device), tf.GradientTape() as tape:
                x = given = tf.identity(x)  # on this device
                if given.dtype.is_floating:
                    tape.watch(given)
                x = model(given, training=True)
                if device == self.job.devices[-1]:
                    loss = self.loss(labels, x)
                    x = self._scaled(loss)
            passes.append((device, model, tape, given, x))
        gradients: dict[int, Any] = {}
        upstream = None
        for device, model, tape, given, result in reversed(passes):
            trained = model.trainable_variables
            with tf.device(device):
                *slopes, upstream = tape.gradient(result, [*trained, given], upstream)
                slopes = [*map(tf.convert_to_tensor, slopes)]
            gradients |= dict(zip(map(id, trained), slopes, strict=True))
        return loss, [gradients[id(variable)] for variable in variables]


class LiteRTPredictor(ConvertedPredictor):
    """A Keras network in LiteRT, TensorFlow's runtime for devices: in float32, or in int8."""

    executions = ("litert",)
    _learner: TensorFlowLearner

    def __init__(self, job: Job, threads: int) -> None:
        from ai_edge_litert.interpreter import Interpreter

        super().__init__(job)
        self._learner = TensorFlowLearner(replace(job, execution="graph", dtype=DEFAULT_DTYPE))
        self._model = self._converted()
        self._interpreter = Interpreter(model_content=self._model, num_threads=threads)
        self._interpreter.allocate_tensors()
        (given,) = self._interpreter.get_input_details()
        (answer,) = self._interpreter.get_output_details()
        self._input, self._output = given["index"], answer["index"]

    def _converted(self) -> bytes:
        """LiteRT's file of the network, by way of a SavedModel for one size of batches."""
        shape = (self.job.batch, *self.job.training.shape)
        with tempfile.TemporaryDirectory() as folder:
            self._learner.in_use().export(
                folder,
                format="tf_saved_model",
                verbose=False,
                input_signature=[tf.TensorSpec(shape, DEFAULT_DTYPE)],
            )
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            if self.job.dtype == INT8:
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
                converter.representative_dataset = self._representative
                converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            model: bytes = converter.convert()
            return model

    def _representative(self) -> Iterator[list[Any]]:
        return ([batch] for batch in self.calibration_batches())

    def place(self, batch: Batch) -> Placed:
        """Copies: interpreters take NumPy's arrays."""
        examples, labels = batch
        return np.array(examples), np.array(labels)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The interpreter's three calls: set the input, invoke, get a copy of the answer."""
        return partial(self._answer, examples)

    def _answer(self, examples: Any) -> Any:
        interpreter = self._interpreter
        interpreter.set_tensor(self._input, examples)
        interpreter.invoke()
        return interpreter.get_tensor(self._output)

    def model_bytes(self) -> int:
        """LiteRT's file."""
        return len(self._model)
