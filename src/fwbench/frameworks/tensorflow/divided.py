"""A network whose layers are on several devices, in TensorFlow: a Keras model for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from fwbench.frameworks.tensorflow.layers import build
from fwbench.frameworks.tensorflow.training import TensorFlowLearner


class _Chain(keras.Model):  # type: ignore[misc]
    """Models one after the other, each on a device.

    Args:
        parts: each with the name of its device.
    """

    def __init__(self, parts: Sequence[tuple[str, Any]]) -> None:
        super().__init__(name="divided")
        self.parts = parts
        self.models = [model for _, model in parts]  # Keras finds their variables here

    def call(self, x: Any, training: bool = False) -> Any:
        """The logits of a batch, on the last device."""
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
            own = model.trainable_variables
            with tf.device(device):
                *found, upstream = tape.gradient(result, [*own, given], upstream)
                found = [*map(tf.convert_to_tensor, found)]
            gradients |= dict(zip(map(id, own), found, strict=True))
        return loss, [gradients[id(variable)] for variable in variables]

    def placement(self) -> Mapping[str, int]:
        """By the device of each variable's own value."""
        numbers: Counter[str] = Counter()
        for variable in self.model.trainable_variables:
            where = tf.DeviceSpec.from_string(variable.value.device)
            numbers[f"{where.device_type.lower()}:{where.device_index}"] += (
                variable.shape.num_elements()
            )
        return numbers
