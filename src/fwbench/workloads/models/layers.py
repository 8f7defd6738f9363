"""What a model is made of: layers, their shapes and their parameters. They name no framework.

Images are (height, width, channels), tokens (length,), both without the batch. The parameters of a
layer are NumPy arrays in these layouts; a framework's file converts them to its own:

==============  =====================================================================
``Conv``        kernel (height, width, channels in, filters), bias (filters,)
``Dense``       kernel (in, units), bias (units,)
``Embedding``   table (vocabulary, units)
``LSTM``        input kernel (in, 4 units), recurrent kernel (units, 4 units), bias
                (4 units,); gates in the order input, forget, cell, output
==============  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Arrays = list[NDArray[np.float64]]


@dataclass(frozen=True)
class Layer:
    """A layer of a model: what it computes, and the parameters that it begins with.

    Attributes:
        parameters: how many arrays of parameters it has.
    """

    parameters: ClassVar[int] = 0

    def output(self, shape: Shape) -> Shape:
        """The shape of the result for an input of ``shape``."""
        return shape

    def initial(self, shape: Shape, rng: np.random.Generator) -> Arrays:
        """Draw the initial parameters of the layer.

        Args:
            shape: of an input, without the batch.
            rng: draws the weights; advanced by each draw.
        """
        return []

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """The parameters in the layouts of :func:`channels_first`."""
        return parameters


@dataclass(frozen=True)
class Conv(Layer):
    """Convolution (cross-correlation) with stride 1, then ReLU."""

    filters: int
    kernel: int
    same: bool = False  # zeros around, so that the output is as large as the input
    parameters: ClassVar[int] = 2

    def output(self, shape: Shape) -> Shape:
        """(height, width, filters): two dimensions smaller by ``kernel - 1`` without ``same``."""
        height, width, _ = shape
        lost = 0 if self.same else self.kernel - 1
        return height - lost, width - lost, self.filters

    def initial(self, shape: Shape, rng: np.random.Generator) -> Arrays:
        """Kernel (height, width, channels in, filters) and bias (filters,)."""
        kernel = (self.kernel, self.kernel, shape[-1], self.filters)
        return [_glorot(kernel, rng), np.zeros(self.filters)]

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernel (filters, channels in, height, width)."""
        kernel, bias = parameters
        return [kernel.transpose(3, 2, 0, 1), bias]


@dataclass(frozen=True)
class _Pool(Layer):
    size: int = 2

    def output(self, shape: Shape) -> Shape:
        """Height and width divided by the size; what is left over is dropped."""
        height, width, channels = shape
        return height // self.size, width // self.size, channels


@dataclass(frozen=True)
class AveragePool(_Pool):
    """Means of squares that do not overlap."""


@dataclass(frozen=True)
class MaxPool(_Pool):
    """Maxima of squares that do not overlap."""


@dataclass(frozen=True)
class Flatten(Layer):
    """All elements in a row, channels last."""

    def output(self, shape: Shape) -> Shape:
        """One dimension: the product of all others."""
        return (math.prod(shape),)


@dataclass(frozen=True)
class Dense(Layer):
    """A fully connected layer, then ReLU where asked for."""

    units: int
    relu: bool = True
    parameters: ClassVar[int] = 2

    def output(self, shape: Shape) -> Shape:
        """One dimension: as many elements as units."""
        return (self.units,)

    def initial(self, shape: Shape, rng: np.random.Generator) -> Arrays:
        """Kernel (elements in, units) and bias (units,)."""
        return [_glorot((*shape, self.units), rng), np.zeros(self.units)]

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernel (units, elements in) and bias (units,)."""
        kernel, bias = parameters
        return [kernel.T, bias]


@dataclass(frozen=True)
class Dropout(Layer):
    """Sets this share of the elements to zero, and scales the others up, while training."""

    rate: float


@dataclass(frozen=True)
class Embedding(Layer):
    """A vector for each token."""

    vocabulary: int
    units: int
    parameters: ClassVar[int] = 1

    def output(self, shape: Shape) -> Shape:
        """(length, units): a vector for each token."""
        return (*shape, self.units)

    def initial(self, shape: Shape, rng: np.random.Generator) -> Arrays:
        """The table (vocabulary, units), uniform between -0.05 and 0.05."""
        return [rng.uniform(-0.05, 0.05, (self.vocabulary, self.units))]


@dataclass(frozen=True)
class LSTM(Layer):
    """Long short-term memory: sigmoid gates, tanh cells, one bias; the last output is the result.

    Hochreiter and Schmidhuber 1997, with forget gates (Gers et al. 2000), as all three frameworks
    have it.
    """

    units: int
    parameters: ClassVar[int] = 3

    def output(self, shape: Shape) -> Shape:
        """One dimension: the last output, as many elements as units."""
        return (self.units,)

    def initial(self, shape: Shape, rng: np.random.Generator) -> Arrays:
        """Both kernels and the bias, 1 for the forget gate."""
        kernels = [_glorot((n, 4 * self.units), rng) for n in (shape[-1], self.units)]
        bias = np.zeros(4 * self.units)
        bias[self.units : 2 * self.units] = 1.0
        return [*kernels, bias]

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernels (4 units, in) and (4 units, units), and a second bias."""
        kernel, recurrent, bias = parameters
        return [kernel.T, recurrent.T, bias, np.zeros_like(bias)]


def shapes(layers: Sequence[Layer], shape: Shape) -> Iterator[tuple[Layer, Shape]]:
    """Each layer with the shape of its input.

    Args:
        layers: of the model, in order.
        shape: of the model's input.
    """
    for layer in layers:
        yield layer, shape
        shape = layer.output(shape)


def initial(layers: Sequence[Layer], shape: Shape, seed: int) -> list[Arrays]:
    """The initial parameters of each layer, the same in every process; float64.

    Args:
        layers: of the model, in order.
        shape: of the model's input, without the batch.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    # In float32's precision, so that every framework begins with exactly the same numbers.
    return [
        [array.astype(np.float32).astype(np.float64) for array in layer.initial(before, rng)]
        for layer, before in shapes(layers, shape)
    ]


def channels_first(
    layers: Sequence[Layer], shape: Shape, parameters: Sequence[Arrays]
) -> Iterator[NDArray[np.float64]]:
    """Parameters for a framework whose images have the channels first, also when flattened.

    Args:
        layers: of the model, in order.
        shape: of the model's input.
        parameters: of each layer, as :func:`initial` gives them.

    Returns:
        All arrays in order: kernels of convolutions (filters, channels in, height, width), of dense
        layers (units, in), of LSTMs (4 units, in) and (4 units, units), each with its bias, after
        that of an LSTM a second one, which is zero.
    """
    flattened: Shape | None = None
    for (layer, before), arrays in zip(shapes(layers, shape), parameters, strict=True):
        if isinstance(layer, Flatten):
            flattened = before
        if flattened and arrays:
            kernel, *rest = arrays
            rows = kernel.reshape(*flattened, -1).transpose(2, 0, 1, 3)
            yield from layer.outputs_first([rows.reshape(kernel.shape), *rest])
            flattened = None
        else:
            yield from layer.outputs_first(arrays)


def _glorot(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform within sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    field = math.prod(shape[:-2])
    limit = math.sqrt(6.0 / (field * (shape[-2] + shape[-1])))
    return rng.uniform(-limit, limit, shape)
