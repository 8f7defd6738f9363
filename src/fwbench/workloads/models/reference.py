"""What the losses of a training loop are: all of it in NumPy, in float64, with no framework.

Every layer is a function that returns its result and the way back: a function from the gradient of
the loss with respect to the result to those with respect to the input and the parameters (reverse
accumulation; Goodfellow, Bengio and Courville, Deep Learning, 2016, section 6.5). Dropout is off.

It is plain rather than fast: a step of eight texts of 500 tokens takes a fifth of a second. So the
losses of the suite's own models are stored; ``scripts/trajectories.py`` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fwbench.errors import DeclarationError, UsageError
from fwbench.workloads.models import layers
from fwbench.workloads.models.layers import Arrays, Layer
from fwbench.workloads.training import TRAJECTORY_STEPS, Adam, Optimizer, RMSprop, Training

Array = NDArray[np.float64]

#: From the gradient of a result to that of the input and those of the parameters.
PullBack = Callable[[Array], tuple[Array, Arrays]]
Result = tuple[Array, PullBack]

#: Which rows of an array a step changes.
Rows = slice | NDArray[Any]
EVERY_ROW = slice(None)

_T = TypeVar("_T")


def losses(training: Training, batch: int, steps: int, lazy: bool = False) -> list[float]:
    """The losses of the first steps over the batches of the check, from the initial weights on.

    Args:
        training: model, data and optimiser.
        batch: the batch size.
        steps: how many, at most :data:`~fwbench.workloads.training.TRAJECTORY_STEPS`.
        lazy: whether a step leaves the rows of an embedding's table whose tokens do not occur in
            its batch as they are, and their moments; PyTorch's ``SparseAdam`` and MXNet's
            ``lazy_update`` do. All else is trained as ever.

    Returns:
        The loss of each batch, before the update of its step.

    Raises:
        UsageError: more steps than the check has.
        DeclarationError: a layer or an optimiser without a reference.
    """
    if steps > TRAJECTORY_STEPS:
        raise UsageError(
            f"asked for {steps} steps; the check has {TRAJECTORY_STEPS}: ask for fewer"
        )
    parameters = training.initial()
    descents = [[Descent(training.optimizer, array) for array in arrays] for arrays in parameters]
    trajectory = []
    for x, labels in training.check_batches(batch)[:steps]:
        examples = x.astype(np.float64) if training.vocabulary is None else x
        loss, gradients = _gradients(training.layers, parameters, examples, labels)
        trajectory.append(loss)
        for layer, of_layer, updates in zip(training.layers, gradients, descents, strict=True):
            rows = np.unique(x) if lazy and isinstance(layer, layers.Embedding) else EVERY_ROW
            for gradient, descent in zip(of_layer, updates, strict=True):
                descent.step(gradient, rows)
    return trajectory


def _gradients(
    model: Sequence[Layer], parameters: Sequence[Arrays], x: NDArray[Any], labels: NDArray[Any]
) -> tuple[float, list[Arrays]]:
    """The loss of a batch, and its gradient for the parameters of each layer."""
    ways_back = []
    for layer, arrays in zip(model, parameters, strict=True):
        x, backward = forward(layer, arrays, x)
        ways_back.append(backward)
    loss, gradient = cross_entropy(x, labels)
    gradients = []
    for backward in reversed(ways_back):
        gradient, of_layer = backward(gradient)
        gradients.append(of_layer)
    return loss, gradients[::-1]


def forward(layer: Layer, parameters: Arrays, x: NDArray[Any]) -> Result:
    """The result of one layer, and the way back.

    Args:
        layer: which.
        parameters: of it, float64, in the layouts of :mod:`fwbench.workloads.models.layers`.
        x: images or vectors, float64, or tokens; (batch, ...).

    Returns:
        The result, (batch, ...), and a function from the gradient with respect to the result, of
        its shape, to the gradients with respect to ``x`` and to each parameter, in their shapes.

    Raises:
        DeclarationError: a layer without a reference.
    """
    return _of(layer, _FORWARD)(layer, parameters, x)


def _conv(layer: layers.Conv, parameters: Arrays, x: NDArray[Any]) -> Result:
    """Sums over windows; the way back is a convolution with the kernel turned around."""
    kernel, bias = parameters
    size, lost = layer.kernel, layer.kernel - 1
    # TensorFlow and PyTorch put the odd zero of an even kernel after the image.
    before = lost // 2 if layer.same else 0
    after = lost - before if layer.same else 0
    windows = _windows(x, size, before, after)
    result, relu_back = _relu(np.tensordot(windows, kernel, ([3, 4, 5], [2, 0, 1])) + bias)

    def backward(gradient: Array) -> tuple[Array, Arrays]:
        gradient = relu_back(gradient)
        of_kernel = np.tensordot(windows, gradient, ([0, 1, 2], [0, 1, 2])).transpose(1, 2, 0, 3)
        reached = _windows(gradient, size, lost - before, lost - after)
        of_x = np.tensordot(reached, kernel[::-1, ::-1], ([4, 5, 3], [0, 1, 3]))
        return of_x, [of_kernel, gradient.sum((0, 1, 2))]

    return result, backward


def _windows(x: NDArray[Any], size: int, before: int, after: int) -> NDArray[Any]:
    """Every square of an image with zeros around.

    Args:
        x: (batch, height, width, channels).
        size: of the squares.
        before: how many zeros above and to the left.
        after: how many below and to the right.

    Returns:
        (batch, places down, places across, channels, size, size).
    """
    zeros = (before, after)
    padded = np.pad(x, ((0, 0), zeros, zeros, (0, 0)))
    return sliding_window_view(sliding_window_view(padded, size, 1), size, 2)


def _relu(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """The frameworks take 0 for the gradient at 0."""
    return np.maximum(x, 0.0), lambda gradient: gradient * (x > 0.0)


def _average_pool(layer: layers.AveragePool, _: Arrays, x: Array) -> Result:
    def backward(gradient: Array) -> tuple[Array, Arrays]:
        of_x = np.zeros_like(x)
        _squares(of_x, layer.size)[...] = gradient[..., None, None] / layer.size**2
        return of_x, []

    return _squares(x, layer.size).mean((4, 5)), backward


def _max_pool(layer: layers.MaxPool, _: Arrays, x: Array) -> Result:
    """The first of equal elements has the gradient; after a ReLU they are zeros, with none."""
    squares = _squares(x, layer.size)
    flat = squares.reshape(*squares.shape[:4], -1)
    largest = flat.argmax(-1)[..., None]

    def backward(gradient: Array) -> tuple[Array, Arrays]:
        of_flat = np.zeros_like(flat)
        np.put_along_axis(of_flat, largest, gradient[..., None], -1)
        of_x = np.zeros_like(x)
        _squares(of_x, layer.size)[...] = of_flat.reshape(squares.shape)
        return of_x, []

    return np.take_along_axis(flat, largest, -1)[..., 0], backward


def _squares(x: Array, size: int) -> Array:
    """A view: (batch, squares down, squares across, channels, size, size); no remainder."""
    batch, height, width, channels = x.shape
    down, across = height // size, width // size
    whole = x[:, : down * size, : across * size]
    return whole.reshape(batch, down, size, across, size, channels).transpose(0, 1, 3, 5, 2, 4)


def _flatten(_: layers.Flatten, __: Arrays, x: NDArray[Any]) -> Result:
    return x.reshape(len(x), -1), lambda gradient: (gradient.reshape(x.shape), [])


def _dense(layer: layers.Dense, parameters: Arrays, x: NDArray[Any]) -> Result:
    kernel, bias = parameters
    result = x @ kernel + bias
    relu_back: Callable[[Array], Array] = _unchanged
    if layer.relu:
        result, relu_back = _relu(result)

    def backward(gradient: Array) -> tuple[Array, Arrays]:
        gradient = relu_back(gradient)
        return gradient @ kernel.T, [x.T @ gradient, gradient.sum(0)]

    return result, backward


def _unchanged(gradient: Array) -> Array:
    return gradient


def _dropout(_: layers.Dropout, __: Arrays, x: Array) -> Result:
    return x, lambda gradient: (gradient, [])


def _embedding(_: layers.Embedding, parameters: Arrays, x: NDArray[Any]) -> Result:
    (table,) = parameters

    def backward(gradient: Array) -> tuple[Array, Arrays]:
        of_table = np.zeros_like(table)
        np.add.at(of_table, x, gradient)  # a token that occurs twice counts twice
        return np.zeros(x.shape), [of_table]

    return table[x], backward


def _lstm(_: layers.LSTM, parameters: Arrays, x: Array) -> Result:
    """The way back is backpropagation through time (Werbos 1990)."""
    kernel, recurrent, bias = parameters
    gates, cells, outputs = _lstm_states(x @ kernel + bias, recurrent)

    def backward(gradient: Array) -> tuple[Array, Arrays]:
        slopes = _lstm_slopes(gates, cells, recurrent, gradient)
        of_kernels = [
            np.tensordot(inputs, slopes, ([0, 1], [0, 1])) for inputs in (x, outputs[:, :-1])
        ]
        return slopes @ kernel.T, [*of_kernels, slopes.sum((0, 1))]

    return outputs[:, -1], backward


def _lstm_states(inputs: Array, recurrent: Array) -> tuple[Array, Array, Array]:
    """What an LSTM goes through.

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
        now = inputs[:, t] + outputs[:, t] @ recurrent
        before = now.reshape(batch, 4, units).swapaxes(0, 1)
        gates[t] = _sigmoid(before)
        gates[t, 2] = np.tanh(before[2])
        enter, keep, new, leave = gates[t]
        cells[:, t + 1] = keep * cells[:, t] + enter * new
        outputs[:, t + 1] = leave * np.tanh(cells[:, t + 1])
    return gates, cells, outputs


def _lstm_slopes(gates: Array, cells: Array, recurrent: Array, gradient: Array) -> Array:
    """The gradient with respect to what the gates are functions of.

    Args:
        gates: as :func:`_lstm_states` returns them.
        cells: the same.
        recurrent: the recurrent kernel, (units, 4 units).
        gradient: with respect to the last output, (batch, units).

    Returns:
        (batch, length, 4 units).
    """
    batch, units = gradient.shape
    slopes = np.empty((batch, len(gates), 4 * units))
    of_cell = np.zeros_like(gradient)
    for t in reversed(range(len(gates))):
        enter, keep, new, leave = gates[t]
        seen = np.tanh(cells[:, t + 1])
        of_cell += gradient * leave * (1.0 - seen**2)
        slopes[:, t] = np.concatenate(
            [
                of_cell * new * enter * (1.0 - enter),
                of_cell * cells[:, t] * keep * (1.0 - keep),
                of_cell * enter * (1.0 - new**2),
                gradient * seen * leave * (1.0 - leave),
            ],
            axis=1,
        )
        gradient = slopes[:, t] @ recurrent.T
        of_cell *= keep
    return slopes


def _sigmoid(x: Array) -> Array:
    """By way of tanh, which cannot overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def cross_entropy(logits: Array, labels: NDArray[Any]) -> tuple[float, Array]:
    """The mean softmax cross-entropy, and its gradient.

    Args:
        logits: (batch, classes).
        labels: (batch,).

    Returns:
        The loss, in nats, and its gradient with respect to the logits.
    """
    shifted = logits - logits.max(1, keepdims=True)  # so that exp cannot overflow
    exponentials = np.exp(shifted)
    sums = exponentials.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = (np.log(sums[:, 0]) - shifted[rows, labels]).mean()
    gradient = exponentials / sums
    gradient[rows, labels] -= 1.0
    return float(loss), gradient / len(labels)


class Descent:
    """An optimiser's work on one array of parameters.

    Args:
        optimizer: with its constants.
        array: float64; changed in place.

    Raises:
        DeclarationError: an optimiser without a reference.
    """

    def __init__(self, optimizer: Optimizer, array: Array) -> None:
        self._optimizer = optimizer
        self._decrease = _of(optimizer, _DECREASES)
        self._array = array
        self._moments = np.zeros((2, *array.shape))
        self._steps = 0

    def step(self, gradient: Array, rows: Rows = EVERY_ROW) -> None:
        """Update the array by one step of the optimiser.

        Args:
            gradient: of the array's shape.
            rows: the rows that change, each once, and their moments; the step counts for all.
        """
        self._steps += 1
        decrease, self._moments[:, rows] = self._decrease(
            self._optimizer, self._steps, gradient[rows], self._moments[:, rows]
        )
        self._array[rows] -= decrease


def _adam(adam: Adam, steps: int, gradient: Array, moments: Array) -> tuple[Array, Array]:
    """Algorithm 1 of the paper, in the order that the end of its section 2 gives."""
    first = adam.beta_1 * moments[0] + (1.0 - adam.beta_1) * gradient
    second = adam.beta_2 * moments[1] + (1.0 - adam.beta_2) * gradient**2
    rate = adam.learning_rate * np.sqrt(1.0 - adam.beta_2**steps) / (1.0 - adam.beta_1**steps)
    return rate * first / (np.sqrt(second) + adam.epsilon), np.stack([first, second])


def _rmsprop(rmsprop: RMSprop, _: int, gradient: Array, moments: Array) -> tuple[Array, Array]:
    """The second moment alone."""
    second = rmsprop.rho * moments[1] + (1.0 - rmsprop.rho) * gradient**2
    decrease = rmsprop.learning_rate * gradient / np.sqrt(second + rmsprop.epsilon)
    return decrease, np.stack([moments[0], second])


def _of(thing: object, table: Mapping[type[Any], _T]) -> _T:
    """What a table has for the type of a thing."""
    if type(thing) not in table:
        known = ", ".join(kind.__name__ for kind in table)
        raise DeclarationError(f"no reference for {thing!r}; add its own to those for {known}")
    return table[type(thing)]


_FORWARD: dict[type[Layer], Callable[[Any, Arrays, NDArray[Any]], Result]] = {
    layers.Conv: _conv,
    layers.AveragePool: _average_pool,
    layers.MaxPool: _max_pool,
    layers.Flatten: _flatten,
    layers.Dense: _dense,
    layers.Dropout: _dropout,
    layers.Embedding: _embedding,
    layers.LSTM: _lstm,
}

_DECREASES: dict[type[Any], Callable[[Any, int, Array, Array], tuple[Array, Array]]] = {
    Adam: _adam,
    RMSprop: _rmsprop,
}
