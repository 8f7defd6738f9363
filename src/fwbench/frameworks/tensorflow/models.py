"""Models of users in TensorFlow: a Keras model."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.frameworks.learner import Dropouts
from fwbench.frameworks.models import SEED, ModelLearner, arrays_of, convert_attributes
from fwbench.frameworks.tensorflow.training import EXECUTIONS, clear, new_optimizer

_POLICIES = {"bfloat16": "mixed_bfloat16"}


def _cross_entropy(result: Any, target: Any) -> Any:
    logits = tf.reshape(result, (-1, result.shape[-1]))
    of_each = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(target, (-1,)), logits)
    return tf.reduce_mean(of_each)


_LOSSES: Mapping[bool, Callable[..., Any]] = {
    True: _cross_entropy,
    False: lambda result, y: tf.reduce_mean(tf.square(result - tf.reshape(y, result.shape))),
}


class TensorFlowModelLearner(ModelLearner):
    """A Keras model with a step of one's own: eager, as a graph, or compiled by XLA."""

    framework = "tensorflow"
    takes = "a Keras model"
    remedy = (
        "make tensors in the dtype of the inputs (`tf.zeros(shape, x.dtype)`), and constants by "
        "`add_weight(trainable=False)`"
    )
    executions = tuple(EXECUTIONS)

    def _build(self) -> None:
        policy = _POLICIES.get(self.job.dtype, self.job.dtype)
        self._dtype = "float64" if self.job.dtype == "float64" else "float32"
        self._model = self._in(policy)
        self._listed = len(self.model.taken) > 1 and _takes_list(self._model)
        self._optimizer = new_optimizer(self.model.optimizer)
        layers = [*self._model._flatten_layers()]  # noqa: SLF001 (`layers` has the top alone)
        self._dropouts = Dropouts(layers)
        if self._dtype == "float64":
            convert_attributes(layers, tf.Tensor, _widened)
        self._compile()

    def _in(self, policy: str) -> Any:
        """The model with a dtype policy; layers are numbered from the start in its names."""
        keras.utils.clear_session()
        keras.utils.set_random_seed(SEED)
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(policy)
        try:
            model = self.built(tf)
        finally:
            keras.config.set_dtype_policy(before)
        self._check_built(model, before if policy not in _POLICIES.values() else None)
        return model if model.dtype_policy.name == policy else self._cast(model, policy)

    def _check_built(self, model: Any, users: Any) -> None:
        """Refuse what is compiled, or in a narrow policy: a layer's, or the user's for all."""
        layers = [*model._flatten_layers()]  # noqa: SLF001 (`layers` has the top alone)
        for layer in layers:
            if isinstance(layer.call, tf.types.experimental.PolymorphicFunction):
                self.refuse_compiled(layer.call, ["graph", "xla"])
        if users is not None:
            policies = [users, *(layer.dtype_policy for layer in layers)]
            self.check_precision(policy.compute_dtype for policy in policies)

    def _cast(self, model: Any, policy: str) -> Any:
        """A model that was built before, layer by layer."""

        def cast(layer: Any) -> Any:
            config = layer.get_config()
            if "dtype" in config:
                config["dtype"] = policy
            return type(layer).from_config(config)

        try:
            clone = keras.models.clone_model(model, clone_function=cast)
        except (TypeError, ValueError) as error:
            raise DeclarationError(
                f"{self.model.name} for tensorflow cannot be made again in {policy}, to be "
                "verified or measured in it; give a function or a class that builds it"
            ) from error
        clone.set_weights(model.get_weights())
        return clone

    def _compile(self) -> None:
        """Trace the step again, which reads the rates of dropout."""
        self._step = EXECUTIONS[self.job.execution](self._train)

    def _is_model(self, given: Any) -> bool:
        return isinstance(given, keras.Model)

    def _called(self, inputs: Sequence[Any], *, training: bool) -> Any:
        if self._listed:
            return self._model(list(inputs), training=training)
        return self._model(*inputs, training=training)

    def _train(self, inputs: Sequence[Any], targets: Sequence[Any]) -> Any:
        variables = self._model.trainable_variables
        with tf.GradientTape() as tape:
            loss = self.loss_of(_LOSSES, self._called(inputs, training=True), targets)
            # What layers add, such as regularization, is minimised as by `fit`.
            for added in self._model.losses:
                loss += tf.cast(added, loss.dtype)
        gradients = tape.gradient(loss, variables)
        self._optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def state(self) -> dict[str, NDArray[Any]]:
        """All variables, by their paths."""
        return {variable.path: np.array(variable) for variable in self._model.variables}

    def load(self, values: Iterable[NDArray[Any]]) -> None:
        """In place, so that graphs stay."""
        for variable, array in zip(self._model.variables, values, strict=True):
            variable.assign(array)

    def trained_names(self) -> list[str]:
        """The trainable variables."""
        return [variable.path for variable in self._model.trainable_variables]

    def _answer(self, inputs: Sequence[Any]) -> Any:
        return self._called(inputs, training=False)

    def placed(self, array: NDArray[Any]) -> Any:
        """``tf.constant``; the device is the scope's."""
        return tf.constant(array, self._dtype if array.dtype.kind == "f" else None)

    def on_host(self, array: Any) -> NDArray[Any]:
        """By way of float32 for bfloat16."""
        wide = tf.cast(array, tf.float32) if array.dtype == tf.bfloat16 else array
        values: NDArray[Any] = wide.numpy()
        return values

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The model as a function, called with ``training=False``."""
        self.load(self.initial.values())

        def answered(*inputs: Any) -> Any:
            return arrays_of(self._called(inputs, training=False))

        return partial(EXECUTIONS[self.job.execution](answered), *examples)

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step by ``GradientTape`` and ``apply_gradients``."""
        return self._step(examples, labels)

    def reset(self, *, exact: bool) -> None:
        """Variables in place, so that graphs stay where nothing is dropped out."""
        self.check_trained()
        if not self._optimizer.built:
            self._optimizer.build(self._model.trainable_variables)
        clear(self._optimizer)
        self.load(self.initial.values())
        if self._dropouts.switch(on=not exact):
            self._compile()

    def set_learning_rate(self, learning_rate: float) -> None:
        """A variable of the optimiser."""
        self._optimizer.learning_rate = learning_rate


def _widened(tensor: Any) -> Any:
    return tf.cast(tensor, tf.float64) if tensor.dtype == tf.float32 else tensor


def _takes_list(model: Any) -> bool:
    """Tell whether several inputs are one argument, as in Keras' functional models."""
    parameters = inspect.signature(model.call).parameters.values()
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return len([p for p in positional if p.name not in ("training", "mask")]) == 1
