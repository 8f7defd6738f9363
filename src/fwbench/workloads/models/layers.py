"""Parts of networks: layers, their shapes and their parameters. They name no framework.

Images are (height, width, channels), texts (length,), sequences (length, units), all without the
batch. The parameters of a layer are NumPy arrays in these layouts; a framework's file converts
them to its own:

==============  =====================================================================
``Conv``        kernel (height, width, channels in, filters), bias (filters,)
``Dense``       kernel (in, units), bias (units,)
``Embedding``   table (vocabulary, units)
``LSTM``        input kernel (in, 4 units), recurrent kernel (units, 4 units), bias
                (4 units,); gates in the order input, forget, cell, output
``GRU``         input kernel (in, 3 units), recurrent kernel (units, 3 units), biases
                (2, 3 units): of inputs, and of outputs; gates update, reset, new
``BatchNorm``   scale (channels,), offset (channels,)
``LayerNorm``   scale (units,), offset (units,)
``Positions``   table (length, units)
==============  =====================================================================

Padding is always a number of zeros on each side: "same" is another arithmetic in TensorFlow than
elsewhere as soon as the stride is not 1.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fwbench.errors import DeclarationError
from fwbench.workloads.models.layer import (
    Arrays,
    Draw,
    Layer,
    Shape,
    Weight,
    glorot,
    ones,
    refuse_sequences,
    remembering,
    uniform,
    zeros,
)


@dataclass(frozen=True)
class Conv(Layer):
    """Convolution (cross-correlation), then ReLU where asked for."""

    filters: int
    #: Height and width, or one number for both.
    kernel: int | tuple[int, int]
    #: Zeros around, so that the output is as large as the input; for a stride of 1.
    same: bool = False
    relu: bool = True
    #: In both directions.
    stride: int = 1
    #: Zeros above and below, and left and right; or one number for both.
    padding: int | tuple[int, int] = 0
    bias: bool = True
    initializer: Draw = field(default=glorot, repr=False)

    @property
    def kernel_size(self) -> tuple[int, int]:
        """Height and width."""
        return _pair(self.kernel)

    @property
    def zeros(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Number of zeros (above, below) and (left, right).

        TensorFlow and PyTorch put the odd zero of an even kernel after the image.
        """
        if self.same:
            height, width = ((size - 1) // 2 for size in self.kernel_size)
            (rows, columns) = self.kernel_size
            return (height, rows - 1 - height), (width, columns - 1 - width)
        height, width = _pair(self.padding)
        return (height, height), (width, width)

    def __post_init__(self) -> None:
        """Refuse ``same`` with a stride or with padding (DeclarationError): it has two meanings."""
        if self.same and (self.stride != 1 or any(_pair(self.padding))):
            raise DeclarationError(
                f"{self} asks for zeros by same, which is for a stride of 1 and has no padding; "
                "give the number of zeros as padding instead of same"
            )

    def output(self, shape: Shape) -> Shape:
        """(height, width, filters)."""
        sizes = zip(shape[:2], self.kernel_size, self.zeros, strict=True)
        height, width = (
            (size + sum(zeros) - kernel) // self.stride + 1 for size, kernel, zeros in sizes
        )
        return height, width, self.filters

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """Kernel (height, width, channels in, filters) and bias (filters,)."""
        kernel = Weight((*self.kernel_size, shape[-1], self.filters), self.initializer)
        return (kernel, Weight((self.filters,), zeros)) if self.bias else (kernel,)

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernel (filters, channels in, height, width)."""
        kernel, *bias = parameters
        return [kernel.transpose(3, 2, 0, 1), *bias]

    def multiply_adds(self, *shapes: Shape) -> int:
        """Each element of the kernel once for each place of the result."""
        height, width, _ = self.output(shapes[0])
        return height * width * self.weights(shapes[0])[0].size


@dataclass(frozen=True)
class _Pool(Layer):
    """Squares of an image."""

    #: Height and width.
    size: int = 2
    #: From one square to the next; their size where it is None.
    stride: int | None = None
    #: How much is added on each side.
    padding: int = 0

    @property
    def step(self) -> int:
        """From one square to the next."""
        return self.size if self.stride is None else self.stride

    def output(self, shape: Shape) -> Shape:
        """Number of squares in height and width; a remainder is dropped."""
        height, width, channels = shape
        down, across = (
            (size + 2 * self.padding - self.size) // self.step + 1 for size in (height, width)
        )
        return down, across, channels


@dataclass(frozen=True)
class AveragePool(_Pool):
    """Means of squares; what is added around counts as zeros."""


@dataclass(frozen=True)
class MaxPool(_Pool):
    """Maxima of squares; what is added around is never the largest."""


@dataclass(frozen=True)
class GlobalAveragePool(Layer):
    """The mean of each channel."""

    def output(self, shape: Shape) -> Shape:
        """(channels,)."""
        return shape[-1:]


@dataclass(frozen=True)
class Flatten(Layer):
    """All elements in a row, channels last."""

    def output(self, shape: Shape) -> Shape:
        """One dimension: the product of all others."""
        return (math.prod(shape),)


@dataclass(frozen=True)
class Dense(Layer):
    """A fully connected layer over the last dimension, then ReLU where asked for."""

    units: int
    relu: bool = True
    initializer: Draw = field(default=glorot, repr=False)

    def output(self, shape: Shape) -> Shape:
        """Shape with as many elements as units in the last dimension."""
        return (*shape[:-1], self.units)

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """Kernel (elements in, units) and bias (units,)."""
        kernel = Weight((shape[-1], self.units), self.initializer)
        return kernel, Weight((self.units,), zeros)

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernel (units, elements in) and bias (units,)."""
        kernel, bias = parameters
        return [kernel.T, bias]

    def multiply_adds(self, *shapes: Shape) -> int:
        """Each element of the kernel once for each row."""
        return math.prod(shapes[0]) * self.units


@dataclass(frozen=True)
class Relu(Layer):
    """The larger of an element and zero."""

    elementwise = True


@dataclass(frozen=True)
class Dropout(Layer):
    """Sets this share of the elements to zero, and scales the others up, while training."""

    rate: float
    elementwise = True
    differs_in_training = True


@dataclass(frozen=True)
class BatchNorm(Layer):
    """Each channel with the mean 0 and the variance 1 over a batch, scaled and moved.

    Ioffe and Szegedy 2015; while it is not trained, moving averages take the place of mean and
    variance.
    """

    #: Added to the variance.
    epsilon: float = 1e-5
    #: Share of a moving average that stays at a step.
    momentum: float = 0.9
    differs_in_training = True

    def output(self, shape: Shape) -> Shape:
        """Shape of the input, an image or a vector.

        Raises:
            DeclarationError: it is a sequence, whose channels frameworks look for in two places.
        """
        refuse_sequences(self, shape)
        return shape

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """Scale (channels,), which begins as 1, and offset (channels,)."""
        return Weight(shape[-1:], ones), Weight(shape[-1:], zeros)


@dataclass(frozen=True)
class Add(Layer):
    """The sum of results of the same shape."""

    elementwise = True

    def output(self, *shapes: Shape) -> Shape:
        """Shape of each input.

        Raises:
            DeclarationError: they differ.
        """
        if len({*shapes}) != 1:
            raise DeclarationError(f"Add needs results of one shape, and was given {shapes}")
        return shapes[0]


@dataclass(frozen=True)
class Concat(Layer):
    """The channels of several results, one after the other."""

    def output(self, *shapes: Shape) -> Shape:
        """Shape with the channels of all inputs together.

        Raises:
            DeclarationError: other dimensions differ, or they are sequences.
        """
        refuse_sequences(self, shapes[0])
        if len({shape[:-1] for shape in shapes}) != 1:
            raise DeclarationError(
                f"Concat needs results that differ in their channels alone, and was given {shapes}"
            )
        return (*shapes[0][:-1], sum(shape[-1] for shape in shapes))


@dataclass(frozen=True)
class Embedding(Layer):
    """A vector for each token."""

    vocabulary: int
    units: int

    def output(self, shape: Shape) -> Shape:
        """(length, units): a vector for each token."""
        return (*shape, self.units)

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """The table (vocabulary, units), uniform between -0.05 and 0.05."""
        return (Weight((self.vocabulary, self.units), uniform),)


@dataclass(frozen=True)
class Positions(Layer):
    """A learned vector for each place of a sequence, added to what is there."""

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """The table (length, units), uniform between -0.05 and 0.05."""
        return (Weight(shape, uniform),)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """Each vector with the mean 0 and the variance 1, scaled and moved (Ba et al. 2016)."""

    #: Added to the variance.
    epsilon: float = 1e-5

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """Scale (units,), which begins as 1, and offset (units,)."""
        return Weight(shape[-1:], ones), Weight(shape[-1:], zeros)


@dataclass(frozen=True)
class Gelu(Layer):
    """Gaussian error linear units by tanh, as GPT-2 has them (Hendrycks and Gimpel 2016)."""

    elementwise = True


@dataclass(frozen=True)
class Attention(Layer):
    """Scaled dot products of several heads (Vaswani et al. 2017), without any kernel.

    Takes queries, keys and values side by side, (length, 3 units), each head's units together.
    """

    heads: int
    #: Whether a place sees those before it alone.
    causal: bool = False

    def output(self, shape: Shape) -> Shape:
        """(length, units).

        Raises:
            DeclarationError: the heads do not share the units evenly.
        """
        length, width = shape
        if width % (3 * self.heads):
            raise DeclarationError(
                f"{self} needs three times as many units as a multiple of its heads, and was "
                f"given {width}; change the heads or the units"
            )
        return length, width // 3

    def multiply_adds(self, *shapes: Shape) -> int:
        """Queries with keys, and weights with values; also of places that are not seen."""
        length, width = shapes[0]
        return 2 * length * length * (width // 3)


@dataclass(frozen=True)
class Tokens(Layer):
    """Every place of a sequence as an example of its own: batch and length become one."""

    by_place = True

    def output(self, shape: Shape) -> Shape:
        """(units,): as many times as there are places."""
        return shape[-1:]


@dataclass(frozen=True)
class Recurrent(Layer):
    """A recurrent layer, whose outputs begin at zero.

    The last output is the result; with ``sequences`` the output at every place.
    """

    units: int
    sequences: bool = False
    #: How many products there are for each unit.
    gates: ClassVar[int]

    def output(self, shape: Shape) -> Shape:
        """(units,), or (length, units) of all places."""
        return (shape[0], self.units) if self.sequences else (self.units,)

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """Both kernels and the biases."""
        columns = self.gates * self.units
        kernels = [Weight((size, columns), glorot) for size in (shape[-1], self.units)]
        return (*kernels, self.biases(columns))

    @abstractmethod
    def biases(self, columns: int) -> Weight:
        """The biases of all gates."""

    def multiply_adds(self, *shapes: Shape) -> int:
        """Each element of both kernels once for each token."""
        length, inputs = shapes[0]
        return length * (inputs + self.units) * self.gates * self.units


@dataclass(frozen=True)
class LSTM(Recurrent):
    """Long short-term memory: sigmoid gates, tanh cells, one bias; the cells begin at zero.

    Hochreiter and Schmidhuber 1997, with forget gates (Gers et al. 2000), as all frameworks do.
    """

    gates = 4

    def biases(self, columns: int) -> Weight:
        """The bias, 1 for the forget gate."""
        return Weight((columns,), remembering)

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernels (4 units, in) and (4 units, units), and a second bias."""
        kernel, recurrent, bias = parameters
        return [kernel.T, recurrent.T, bias, np.zeros_like(bias)]


@dataclass(frozen=True)
class GRU(Recurrent):
    """Gated recurrent units, whose reset gate acts on the product and its bias.

    Cho et al. 2014 have it act on the outputs before the product; the frameworks' layers have it
    as cuDNN. Both biases are trained, as by all of them.
    """

    gates = 3

    def biases(self, columns: int) -> Weight:
        """Both biases."""
        return Weight((2, columns), zeros)

    def outputs_first(self, parameters: Arrays) -> Arrays:
        """Kernels (3 units, in) and (3 units, units), and both biases; the reset gate first."""
        kernel, recurrent, biases = parameters
        order = np.arange(3 * self.units).reshape(3, -1)[[1, 0, 2]].ravel()
        return [array[order] for array in (kernel.T, recurrent.T, *biases)]


def _pair(number: int | tuple[int, int]) -> tuple[int, int]:
    return (number, number) if isinstance(number, int) else number
