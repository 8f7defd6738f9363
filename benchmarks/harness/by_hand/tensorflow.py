"""In TensorFlow: Keras layers, and a step of one's own as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from by_hand import CLASSES, HEAD, STAGES, Task

#: Layers with weights, in the order in which they are made; Keras itself orders them by depth.
_Made = list[Any]


def _normalized(made: _Made, x: Any, filters: int, kernel: int, stride: int = 1) -> Any:
    if kernel > 1 and stride > 1:  # "same" adds zeros on one side only
        x = layers.ZeroPadding2D(kernel // 2)(x)
    padding = "same" if stride == 1 else "valid"
    made += [
        layers.Conv2D(filters, kernel, stride, padding, use_bias=False),
        layers.BatchNormalization(momentum=0.9, epsilon=1e-5),
    ]
    convolution, normalization = made[-2:]
    return normalization(convolution(x))


def _residual(made: _Made, x: Any, filters: int, stride: int) -> Any:
    wide = 4 * filters
    shortcut = _normalized(made, x, wide, 1, stride) if x.shape[-1] != wide else x
    x = layers.ReLU()(_normalized(made, x, filters, 1))
    x = layers.ReLU()(_normalized(made, x, filters, 3, stride))
    return layers.ReLU()(layers.Add()([_normalized(made, x, wide, 1), shortcut]))


def _resnet50(made: _Made, size: Mapping[str, int]) -> Any:
    pictures = keras.Input((size["image"], size["image"], 3))
    x = layers.ReLU()(_normalized(made, pictures, 64 // size["divisor"], 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage, (blocks, filters) in enumerate(STAGES):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _residual(made, x, filters // size["divisor"], stride)
    made.append(layers.Dense(CLASSES))
    return keras.Model(pictures, made[-1](layers.GlobalAveragePooling2D()(x)))


class _Places(layers.Layer):  # type: ignore[misc]
    def build(self, shape: Any) -> None:
        self.table = self.add_weight(shape=shape[1:])

    def call(self, x: Any) -> Any:
        return x + self.table


class _Attention(layers.Layer):  # type: ignore[misc]
    def call(self, x: Any) -> Any:
        _, length, width = x.shape
        units = width // 3
        heads = max(1, units // HEAD)
        operands = keras.ops.reshape(x, (-1, length, 3, heads, units // heads))
        q, k, v = (operands[:, :, part] for part in range(3))
        attended = keras.ops.dot_product_attention(q, k, v, is_causal=True)
        return keras.ops.reshape(attended, (-1, length, units))


def _gelu(x: Any) -> Any:
    return keras.activations.gelu(x, approximate=True)


def _gpt(made: _Made, size: Mapping[str, int]) -> Any:
    def apply(layer: Any, x: Any) -> Any:
        made.append(layer)
        return layer(x)

    def normalized(x: Any) -> Any:
        return apply(layers.LayerNormalization(epsilon=1e-5), x)

    units, vocabulary = size["units"], size["vocabulary"]
    tokens = keras.Input((size["length"],), dtype="int32")
    x = apply(_Places(), apply(layers.Embedding(vocabulary, units), tokens))
    for _ in range(size["layers"]):
        attended = _Attention()(apply(layers.Dense(3 * units), normalized(x)))
        x = layers.Add()([x, apply(layers.Dense(units), attended)])
        inner = apply(layers.Dense(4 * units, _gelu), normalized(x))
        x = layers.Add()([x, apply(layers.Dense(units), inner)])
    answers = apply(layers.Dense(vocabulary), normalized(x))
    return keras.Model(tokens, answers)


_NETWORKS = {"resnet50": _resnet50, "gpt_small": _gpt}


def step(task: Task) -> Callable[[], float]:
    """A step of the network, as a graph or compiled by XLA.

    Args:
        task: what to train.
    """
    made: _Made = []
    model = _NETWORKS[task.network](made, task.size)
    variables = [variable for layer in made for variable in layer.trainable_variables]
    for variable, array in zip(variables, task.weights, strict=True):
        variable.assign(array)
    optimizer = keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)
    optimizer.build(variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    examples = tf.constant(task.examples)
    shape = (len(task.examples), -1) if task.network == "gpt_small" else (-1,)
    labels = tf.constant(task.labels.reshape(shape))

    @tf.function(jit_compile=task.execution == "xla")  # type: ignore[untyped-decorator]
    def train(examples: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(examples, training=True))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return lambda: float(train(examples, labels))
