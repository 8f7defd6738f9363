"""Layers, their initial values, and the trace of a network: weights, values, nodes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError

Shape = tuple[int, ...]
Arrays = list[NDArray[np.float64]]
Draw = Callable[[Shape, np.random.Generator], NDArray[Any]]


def glorot(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform within sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    field = math.prod(shape[:-2])
    limit = math.sqrt(6.0 / (field * (shape[-2] + shape[-1])))
    return rng.uniform(-limit, limit, shape)


def he(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform within sqrt(6 / fan in), so that ReLU keeps the variance (He et al. 2015)."""
    limit = math.sqrt(6.0 / math.prod(shape[:-1]))
    return rng.uniform(-limit, limit, shape)


def uniform(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform between -0.05 and 0.05."""
    return rng.uniform(-0.05, 0.05, shape)


def _constant(number: float, shape: Shape, _: np.random.Generator) -> NDArray[Any]:
    return np.full(shape, number)


zeros = partial(_constant, 0.0)
ones = partial(_constant, 1.0)


def remembering(shape: Shape, _: np.random.Generator) -> NDArray[Any]:
    """The bias of an LSTM: 1 for the forget gate, the second of four."""
    bias = np.zeros((4, shape[0] // 4))
    bias[1] = 1.0
    return bias.ravel()


#: How many dimensions a sequence has, without the batch: length and units.
_SEQUENCE = 2


@dataclass(frozen=True)
class Weight:
    """An array of parameters: its shape, and what it is initialised with."""

    shape: Shape
    initializer: Draw

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def draw(self, rng: np.random.Generator) -> NDArray[Any]:
        """The initial numbers; advances the generator where they are random."""
        return self.initializer(self.shape, rng)


@dataclass(frozen=True)
class Node:
    """A layer of a network with what it takes."""

    layer: "Layer"
    #: The places of the results that it takes; 0 is the network's input, and the node at index
    #: ``i`` of the graph has the place ``i + 1``.
    inputs: tuple[int, ...]
    #: Of these, without the batch.
    shapes: tuple[Shape, ...]

    @property
    def output(self) -> Shape:
        """The shape of the result, without the batch."""
        return self.layer.output(*self.shapes)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The arrays of parameters."""
        return self.layer.weights(self.shapes[0])


class Value:
    """A result in a network that is being traced: what layers are called with.

    Args:
        nodes: of the network so far; a layer that is called adds itself.
        place: of this result; 0 is the network's input.
    """

    def __init__(self, nodes: list[Node], place: int, shape: Shape) -> None:
        self.nodes = nodes
        self.place = place
        self.shape = shape


@dataclass(frozen=True)
class Layer:
    """A layer of a network: what it computes, and the parameters that it begins with."""

    #: Whether each element of the result depends on the same element of the input.
    elementwise: ClassVar[bool] = False
    #: Whether each place of its input is an example of its own to what comes behind it.
    by_place: ClassVar[bool] = False
    #: Whether it computes something else while it is trained.
    differs_in_training: ClassVar[bool] = False

    def __call__(self, *inputs: Value) -> Value:
        """The layer's result in a network.

        Raises:
            DeclarationError: the inputs do not fit, or belong to two networks.
        """
        nodes = inputs[0].nodes
        if any(value.nodes is not nodes for value in inputs):
            raise DeclarationError(f"{self} was called with values of two networks")
        node = Node(self, tuple(v.place for v in inputs), tuple(v.shape for v in inputs))
        shape = node.output
        if min(shape, default=1) < 1:
            raise DeclarationError(
                f"{self} leaves nothing of an input of the shape {node.shapes[0]}: the result "
                f"would have the shape {shape}. Give a larger input or more filters"
            )
        nodes.append(node)
        return Value(nodes, len(nodes), shape)

    def output(self, shape: Shape) -> Shape:
        """The shape of the result for an input of ``shape``."""
        return shape

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """The arrays of parameters for an input of ``shape``, without the batch."""
        return ()

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """The parameters in the layouts of :meth:`Graph.channels_first`."""
        return parameters

    def multiply_adds(self, *shapes: Shape) -> int:
        """Multiplications with an addition in a forward pass; those of kernels alone."""
        return 0


def refuse_sequences(layer: Layer, shape: Shape) -> None:
    """Let a layer of images and vectors take no sequence.

    Raises:
        DeclarationError: the shape is that of a sequence.
    """
    if len(shape) == _SEQUENCE:
        raise DeclarationError(
            f"{layer} is for images and vectors, and was given a sequence of the shape {shape}; "
            "normalize sequences with LayerNorm, and reduce them (LSTM, Flatten, Tokens) before "
            "they are concatenated"
        )
