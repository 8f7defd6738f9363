"""Each layer in NumPy, in float64, with the way back.

A layer is a function that returns its result and a function from the gradient of the loss with
respect to the result to those with respect to the inputs and the parameters. Dropout is off.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.workloads.models import layers
from fwbench.workloads.models.layer import Arrays, Layer
from fwbench.workloads.models.sampling import LOWEST, SampledWords

Array = NDArray[np.float64]

#: From the gradient of a result to those of the inputs and those of the parameters.
PullBack = Callable[[Array], tuple[Arrays, Arrays]]
Result = tuple[Array, PullBack]


def forward(layer: Layer, parameters: Arrays, *inputs: NDArray[Any]) -> Result:
    """The result of one layer, and the way back.

    Args:
        parameters: of it, float64, in the layouts of :mod:`fwbench.workloads.models.layers`.
        inputs: images, sequences or vectors, float64, or tokens; (batch, ...).

    Returns:
        The result, (batch, ...), and a function from the gradient with respect to the result, of
        its shape, to the gradients with respect to each input and to each parameter, in their
        shapes.

    Raises:
        DeclarationError: a layer without a reference.
    """
    if type(layer) not in _FORWARD:
        known = ", ".join(kind.__name__ for kind in _FORWARD)
        raise DeclarationError(f"no reference for {layer!r}; add its own to those for {known}")
    return _FORWARD[type(layer)](layer, parameters, *inputs)


def _conv(layer: layers.Conv, parameters: Arrays, x: Array) -> Result:
    """A product for each place of the kernel: windows would take the memory of all of them."""
    kernel, *bias = parameters
    padded = np.pad(x, ((0, 0), *layer.zeros, (0, 0)))
    height, width, _ = layer.output(x.shape[1:])
    result = np.zeros((len(x), height, width, layer.filters))
    for place, seen in _places(padded, layer.kernel_size, layer.stride, (height, width)):
        result += seen @ kernel[place]
    if bias:
        result += bias[0]
    result, relu_back = _relu(result) if layer.relu else (result, _unchanged)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        gradient = relu_back(gradient)
        of_padded, of_kernel = np.zeros_like(padded), np.empty_like(kernel)
        seen_by = _places(padded, layer.kernel_size, layer.stride, (height, width))
        reached = _places(of_padded, layer.kernel_size, layer.stride, (height, width))
        for (place, seen), (_, of_seen) in zip(seen_by, reached, strict=True):
            of_kernel[place] = np.tensordot(seen, gradient, ([0, 1, 2], [0, 1, 2]))
            of_seen[...] += gradient @ kernel[place].T
        of_bias = [gradient.sum((0, 1, 2))] if bias else []
        return [_cropped(of_padded, layer.zeros)], [of_kernel, *of_bias]

    return result, backward


def _places(
    padded: Array, size: tuple[int, int], stride: int, output: tuple[int, int]
) -> Iterator[tuple[tuple[int, int], Array]]:
    """For each place in a window a view of the elements that windows have there.

    Args:
        padded: (batch, height, width, channels), with what is added around.
        output: how many windows there are, down and across.
    """
    down, across = ((count - 1) * stride + 1 for count in output)
    for row, column in np.ndindex(size):
        yield (
            (row, column),
            padded[:, row : row + down : stride, column : column + across : stride],
        )


def _cropped(padded: Array, added: tuple[tuple[int, int], tuple[int, int]]) -> Array:
    """Without what was added around."""
    (above, below), (left, right) = added
    _, height, width, _ = padded.shape
    return padded[:, above : height - below, left : width - right]


def _relu(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """The frameworks take 0 for the gradient at 0."""
    return np.maximum(x, 0.0), lambda gradient: gradient * (x > 0.0)


def _unchanged(gradient: Array) -> Array:
    return gradient


def _relu_layer(_: layers.Relu, __: Arrays, x: Array) -> Result:
    result, relu_back = _relu(x)
    return result, lambda gradient: ([relu_back(gradient)], [])


def _around(layer: layers.AveragePool | layers.MaxPool) -> tuple[tuple[int, int], tuple[int, int]]:
    return (layer.padding, layer.padding), (layer.padding, layer.padding)


def _average_pool(layer: layers.AveragePool, _: Arrays, x: Array) -> Result:
    padded = np.pad(x, ((0, 0), *_around(layer), (0, 0)))
    height, width, _channels = layer.output(x.shape[1:])
    windows = (layer.size, layer.size), layer.step, (height, width)
    result = np.sum([seen for _, seen in _places(padded, *windows)], axis=0) / layer.size**2

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        of_padded = np.zeros_like(padded)
        for _, of_seen in _places(of_padded, *windows):
            of_seen[...] += gradient / layer.size**2
        return [_cropped(of_padded, _around(layer))], []

    return result, backward


@dataclass(frozen=True)
class RunnerUp(layers.MaxPool):
    """Maxima of squares, of which the second largest element has the gradient if it is as large."""

    #: What it may be smaller by, relative to the root mean square of all elements.
    nearly: float = 0.0


def _max_pool(layer: layers.MaxPool, _: Arrays, x: Array) -> Result:
    """The first of equal elements has the gradient; after a ReLU they are zeros, with none."""
    padded = np.pad(x, ((0, 0), *_around(layer), (0, 0)), constant_values=-np.inf)
    height, width, _channels = layer.output(x.shape[1:])
    windows = (layer.size, layer.size), layer.step, (height, width)
    squares = np.stack([seen for _, seen in _places(padded, *windows)])
    largest = squares.argmax(0)
    if isinstance(layer, RunnerUp):
        second, first = np.sort(squares, axis=0)[-2:]
        near = first - second <= layer.nearly * np.sqrt(np.mean(x**2))
        largest = np.where(near, squares.argsort(0)[-2], largest)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        of_padded = np.zeros_like(padded)
        for place, (_, of_seen) in enumerate(_places(of_padded, *windows)):
            of_seen[...] += gradient * (largest == place)
        return [_cropped(of_padded, _around(layer))], []

    return squares.max(0), backward


def _global_average_pool(_: layers.GlobalAveragePool, __: Arrays, x: Array) -> Result:
    _batch, height, width, _channels = x.shape

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        share = gradient[:, None, None] / (height * width)
        return [np.broadcast_to(share, x.shape)], []

    return x.mean((1, 2)), backward


def _dense(layer: layers.Dense, parameters: Arrays, x: NDArray[Any]) -> Result:
    kernel, bias = parameters
    result = x @ kernel + bias
    result, relu_back = _relu(result) if layer.relu else (result, _unchanged)
    rows = tuple(range(x.ndim - 1))

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        gradient = relu_back(gradient)
        of_kernel = np.tensordot(x, gradient, (rows, rows))
        return [gradient @ kernel.T], [of_kernel, gradient.sum(rows)]

    return result, backward


def _batch_norm(layer: layers.BatchNorm, parameters: Arrays, x: Array) -> Result:
    """Ioffe and Szegedy 2015, section 3; mean and variance are functions of the batch."""
    scale, offset = parameters
    rows = tuple(range(x.ndim - 1))
    deviation = np.sqrt(x.var(rows) + layer.epsilon)
    normal = (x - x.mean(rows)) / deviation

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        of_scale, of_offset = (gradient * normal).sum(rows), gradient.sum(rows)
        count = x.size / x.shape[-1]
        of_x = (gradient - of_offset / count - normal * of_scale / count) * scale / deviation
        return [of_x], [of_scale, of_offset]

    return normal * scale + offset, backward


def _concat(_: layers.Concat, __: Arrays, *inputs: Array) -> Result:
    ends = np.cumsum([x.shape[-1] for x in inputs])[:-1]
    return np.concatenate(inputs, -1), lambda gradient: (np.split(gradient, ends, -1), [])


def _layer_norm(layer: layers.LayerNorm, parameters: Arrays, x: Array) -> Result:
    scale, offset = parameters
    deviation = np.sqrt(x.var(-1, keepdims=True) + layer.epsilon)
    normal = (x - x.mean(-1, keepdims=True)) / deviation
    rows = tuple(range(x.ndim - 1))

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        scaled = gradient * scale
        mean = scaled.mean(-1, keepdims=True)
        along = normal * (scaled * normal).mean(-1, keepdims=True)
        of_x = (scaled - mean - along) / deviation
        return [of_x], [(gradient * normal).sum(rows), gradient.sum(rows)]

    return normal * scale + offset, backward


def _gelu(_: layers.Gelu, __: Arrays, x: Array) -> Result:
    slope, cubic = np.sqrt(2.0 / np.pi), 0.044715
    tanh = np.tanh(slope * (x + cubic * x**3))

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        inner = slope * (1.0 + 3.0 * cubic * x**2)
        return [gradient * 0.5 * (1.0 + tanh + x * (1.0 - tanh**2) * inner)], []

    return 0.5 * x * (1.0 + tanh), backward


def _attention(layer: layers.Attention, _: Arrays, x: Array) -> Result:
    batch, length, width = x.shape
    size = width // 3 // layer.heads
    split = x.reshape(batch, length, 3, layer.heads, size).transpose(2, 0, 3, 1, 4)
    queries, keys, values = split
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(size)
    if layer.causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        of_result = gradient.reshape(batch, length, layer.heads, size).transpose(0, 2, 1, 3)
        of_weights = of_result @ values.swapaxes(-1, -2)
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
        of_scores /= np.sqrt(size)
        of_split = np.stack(
            [
                of_scores @ keys,
                of_scores.swapaxes(-1, -2) @ queries,
                weights.swapaxes(-1, -2) @ of_result,
            ]
        )
        return [of_split.transpose(1, 3, 0, 2, 4).reshape(x.shape)], []

    result = (weights @ values).transpose(0, 2, 1, 3)
    return result.reshape(batch, length, width // 3), backward


def _sampled_words(
    layer: SampledWords, parameters: Arrays, x: Array, tokens: NDArray[Any]
) -> Result:
    kernel, bias = parameters
    words, log_expected = layer.drawn
    right = np.roll(tokens, -1, 1).ravel()
    hits = right[:, None] == words
    of_right = (x * kernel[right]).sum(1) + bias[right] - log_expected[right]
    of_words = x @ kernel[words].T + bias[words] - log_expected[words]

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        first, others = gradient[:, :1], np.where(hits, 0.0, gradient[:, 1:])
        of_kernel, of_bias = np.zeros_like(kernel), np.zeros_like(bias)
        np.add.at(of_kernel, right, first * x)
        np.add.at(of_bias, right, first[:, 0])
        of_kernel[words] += others.T @ x
        of_bias[words] += others.sum(0)
        of_x = first * kernel[right] + others @ kernel[words]
        return [of_x, np.zeros(tokens.shape)], [of_kernel, of_bias]

    return np.column_stack([of_right, np.where(hits, LOWEST, of_words)]), backward


def _embedding(_: layers.Embedding, parameters: Arrays, x: NDArray[Any]) -> Result:
    (table,) = parameters

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        of_table = np.zeros_like(table)
        np.add.at(of_table, x, gradient)  # a token that occurs twice counts twice
        return [np.zeros(x.shape)], [of_table]

    return table[x], backward


def _recurrent(
    layer: layers.Recurrent, parameters: Arrays, x: Array, rounded: Any = np.asarray
) -> Result:
    outputs, backward = _RECURRENT[type(layer)](parameters, x, rounded)
    if layer.sequences:
        return outputs, backward

    def backward_of_last(gradient: Array) -> tuple[Arrays, Arrays]:
        of_outputs = np.zeros_like(outputs)
        of_outputs[:, -1] = gradient
        return backward(of_outputs)

    return outputs[:, -1], backward_of_last


def untrained(
    layer: Layer,
    parameters: Arrays,
    *inputs: NDArray[Any],
    trained: Callable[..., Result] = forward,
) -> NDArray[Any]:
    """The result of one layer in a network that is in use, and has not been trained.

    The arguments and errors are those of :func:`forward`, which ``trained`` stands for.
    """
    if isinstance(layer, layers.BatchNorm):  # by its moving averages as they begin: 0 and 1
        scale, offset = parameters
        (x,) = inputs
        normal: Array = x / np.sqrt(1.0 + layer.epsilon) * scale + offset
        return normal
    return trained(layer, parameters, *inputs)[0]


def lstm(parameters: Arrays, x: Array, rounded: Any = np.asarray) -> Result:
    """The output of an LSTM at every place, and the way back: through time (Werbos 1990).

    Args:
        parameters: both kernels and the bias, float64.
        rounded: what is kept of gates, cells and outputs at each step.

    Returns:
        (batch, length, units), and a function from the gradient with respect to that.
    """
    kernel, recurrent, bias = parameters
    gates, cells, outputs = _states(x @ kernel + bias, recurrent, rounded)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        slopes = _slopes(gates, cells, recurrent, gradient)
        of_kernels = [
            np.tensordot(inputs, slopes, ([0, 1], [0, 1])) for inputs in (x, outputs[:, :-1])
        ]
        return [slopes @ kernel.T], [*of_kernels, slopes.sum((0, 1))]

    return outputs[:, 1:], backward


def gru(parameters: Arrays, x: Array, rounded: Any = np.asarray) -> Result:
    """The output of a GRU at every place, and the way back; see :func:`lstm`.

    Args:
        parameters: both kernels and both biases, float64.
        rounded: what is kept of sums, gates and outputs at each step.
    """
    kernel, recurrent, (bias, of_outputs) = parameters
    batch, length, _ = x.shape
    units = len(recurrent)
    sums, outputs = x @ kernel + bias, np.zeros((batch, length + 1, units))
    kept = np.empty((length, 4, batch, units))
    for t in range(length):
        product = rounded(outputs[:, t] @ recurrent + of_outputs)
        *before, entering = np.split(rounded(sums[:, t]), 3, axis=1)
        *now, again = np.split(product, 3, axis=1)
        update, reset = rounded(_sigmoid(np.add(before, now)))
        new = rounded(np.tanh(entering + reset * again))
        kept[t] = update, reset, new, again
        outputs[:, t + 1] = rounded(update * outputs[:, t] + (1.0 - update) * new)

    def backward(gradient: Array) -> tuple[Arrays, Arrays]:
        slopes, products = np.empty((2, batch, length, 3 * units))
        of_output = np.zeros((batch, units))
        for t in reversed(range(length)):
            update, reset, new, again = kept[t]
            of_output = of_output + gradient[:, t]
            of_new = of_output * (1.0 - update) * (1.0 - new**2)
            of_update = of_output * (outputs[:, t] - new) * update * (1.0 - update)
            of_reset = of_new * again * reset * (1.0 - reset)
            slopes[:, t] = np.concatenate([of_update, of_reset, of_new], axis=1)
            products[:, t] = np.concatenate([of_update, of_reset, of_new * reset], axis=1)
            of_output = of_output * update + products[:, t] @ recurrent.T
        both = ((x, slopes), (outputs[:, :-1], products))
        of_kernels = [np.tensordot(*pair, ([0, 1], [0, 1])) for pair in both]
        of_biases = np.stack([slopes.sum((0, 1)), products.sum((0, 1))])
        return [slopes @ kernel.T], [*of_kernels, of_biases]

    return outputs[:, 1:], backward


def _states(inputs: Array, recurrent: Array, rounded: Any) -> tuple[Array, Array, Array]:
    """States of an LSTM, step by step.

    Args:
        inputs: the inputs' part of what the gates are functions of, (batch, length, 4 units).
        recurrent: the recurrent kernel, (units, 4 units).

    Returns:
        The gates (length, 4, batch, units), then cells and outputs (batch, length + 1, units), of
        which the first ones are the initial zeros.
    """
    batch, length, _ = inputs.shape
    units = len(recurrent)
    gates = np.empty((length, 4, batch, units))
    cells, outputs = np.zeros((2, batch, length + 1, units))
    for t in range(length):
        now = rounded(inputs[:, t] + outputs[:, t] @ recurrent)
        before = now.reshape(batch, 4, units).swapaxes(0, 1)
        gates[t] = _sigmoid(before)
        gates[t, 2] = np.tanh(before[2])
        enter, keep, new, leave = gates[t] = rounded(gates[t])
        cells[:, t + 1] = rounded(keep * cells[:, t] + enter * new)
        outputs[:, t + 1] = rounded(leave * np.tanh(cells[:, t + 1]))
    return gates, cells, outputs


def _slopes(gates: Array, cells: Array, recurrent: Array, gradient: Array) -> Array:
    """The gradient with respect to what the gates are functions of.

    Args:
        gates: as :func:`_states` returns them.
        recurrent: the recurrent kernel, (units, 4 units).
        gradient: with respect to the outputs, (batch, length, units).

    Returns:
        (batch, length, 4 units).
    """
    batch, length, units = gradient.shape
    slopes = np.empty((batch, length, 4 * units))
    of_cell, of_output = np.zeros((2, batch, units))
    for t in reversed(range(length)):
        of_output = of_output + gradient[:, t]
        enter, keep, new, leave = gates[t]
        seen = np.tanh(cells[:, t + 1])
        of_cell += of_output * leave * (1.0 - seen**2)
        slopes[:, t] = np.concatenate(
            [
                of_cell * new * enter * (1.0 - enter),
                of_cell * cells[:, t] * keep * (1.0 - keep),
                of_cell * enter * (1.0 - new**2),
                of_output * seen * leave * (1.0 - leave),
            ],
            axis=1,
        )
        of_output = slopes[:, t] @ recurrent.T
        of_cell *= keep
    return slopes


def _sigmoid(x: Array) -> Array:
    """By way of tanh, which cannot overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


_RECURRENT: dict[type[Layer], Callable[..., Result]] = {layers.LSTM: lstm, layers.GRU: gru}

_FORWARD: dict[type[Layer], Callable[..., Result]] = {
    layers.Conv: _conv,
    layers.AveragePool: _average_pool,
    layers.MaxPool: _max_pool,
    RunnerUp: _max_pool,
    layers.GlobalAveragePool: _global_average_pool,
    layers.Flatten: lambda _, __, x: (x.reshape(len(x), -1), lambda g: ([g.reshape(x.shape)], [])),
    layers.Dense: _dense,
    layers.Relu: _relu_layer,
    layers.Dropout: lambda _, __, x: (x, lambda gradient: ([gradient], [])),
    layers.BatchNorm: _batch_norm,
    layers.Add: lambda _, __, x, *others: (sum(others, x), lambda g: ([g] * (1 + len(others)), [])),
    layers.Concat: _concat,
    layers.Embedding: _embedding,
    **dict.fromkeys(_RECURRENT, _recurrent),
    layers.Positions: lambda _, table, x: (x + table[0], lambda g: ([g], [g.sum(0)])),
    layers.LayerNorm: _layer_norm,
    layers.Gelu: _gelu,
    layers.Attention: _attention,
    layers.Tokens: lambda _, __, x: (
        x.reshape(-1, x.shape[-1]),
        lambda g: ([g.reshape(x.shape)], []),
    ),
    SampledWords: _sampled_words,
}


#: What a loss in float16 is multiplied by at first. Frameworks begin with 2 ** 15 or 2 ** 16 and
#: leave out updates until no gradient overflows, which is not the training that is checked.
LOSS_SCALE = 2.0**10

#: Mixed precision: digits in bits, the leading one among them; the exponent, as of ``frexp``, below
#: which there are fewer; the scale of gradients.
FORMATS = {"bfloat16": (8, -125, 1.0), "float16": (11, -13, LOSS_SCALE)}


def at_random(seed: int) -> Callable[..., Any]:
    """Rounding up or down at random, with no error on average."""
    rng = np.random.default_rng(seed)
    return lambda numbers: np.floor(numbers + rng.random(numbers.shape))


@dataclass(frozen=True)
class Rounded:
    """Layers in mixed precision, of a batch that has each example a number of times.

    Operands, results, states and gradients are rounded; sums, normalization and updates are not.
    """

    dtype: str
    repeats: int = 1
    whole: Callable[..., Any] = np.rint

    def forward(self, layer: Layer, parameters: Arrays, *inputs: NDArray[Any]) -> Result:
        """Result and way back, as :func:`forward` has them."""
        precise = isinstance(layer, layers.BatchNorm | layers.LayerNorm)
        *_, scale = FORMATS[self.dtype]
        function: Callable[..., Result] = forward
        if isinstance(layer, layers.Recurrent):
            function = partial(_recurrent, rounded=lambda x: self.rounded([x])[0])
        given = parameters if precise else self.rounded(parameters)
        result, pull_back = function(layer, given, *self.rounded(inputs))

        def backward(gradient: Array) -> tuple[Arrays, Arrays]:
            of_inputs, of_parameters = pull_back(*self.rounded([gradient], scale / self.repeats))
            of_parameters = of_parameters if precise else self.rounded(of_parameters, scale)
            return self.rounded(of_inputs, scale / self.repeats), of_parameters

        return self.rounded([result])[0], backward

    def rounded(self, arrays: Any, scale: float = 1.0) -> Arrays:
        """Numbers that the dtype has once they are scaled; tokens as they are."""
        digits, least, _ = FORMATS[self.dtype]
        rounded = []
        for array in arrays:
            _, exponents = np.frexp(array * scale)
            units = np.ldexp(1.0, np.maximum(exponents, least) - digits) / scale
            whole = array.dtype.kind == "i"
            rounded.append(array if whole else self.whole(array / units) * units)
        return rounded
