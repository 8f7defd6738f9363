"""Reference losses of a training loop: all of it in NumPy, in float64, with no framework.

The gradients are those of :mod:`fwbench.workloads.models.gradients`, node by node in reverse order
(reverse accumulation; Goodfellow, Bengio and Courville, Deep Learning, 2016, section 6.5). Dropout
is off.

It is plain rather than fast: a step of eight texts of 500 tokens takes a fifth of a second. So the
losses of the suite's loops are stored; ``scripts/trajectories.py`` writes them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError, UsageError
from fwbench.workloads.models import layers
from fwbench.workloads.models.gradients import Array, PullBack, forward, untrained
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import (
    SGD,
    TRAJECTORY_STEPS,
    Adam,
    Batch,
    Objective,
    Optimizer,
    RMSprop,
)

#: Which rows of an array a step changes.
Rows = slice | NDArray[Any]
EVERY_ROW = slice(None)

#: From an optimiser, its number of steps, a gradient, its squares and the moments to the decrease
#: of the parameters and the new moments.
_Decrease = Callable[[Any, int, Array, Array, Array], tuple[Array, Array]]


def losses(
    training: Objective,
    batch: int,
    steps: int,
    update: str = "dense",
    repeats: int = 1,
    replicas: int = 1,
    layer: Any = forward,
) -> list[float]:
    """The losses of the first steps over the batches of the check, from the initial weights on.

    Args:
        steps: how many, at most :data:`~fwbench.workloads.objective.TRAJECTORY_STEPS`.
        update: of an embedding's table; everything else is trained in full. ``lazy`` leaves the
            rows whose tokens do not occur in the batch as they are, and their moments, like
            PyTorch's ``SparseAdam`` and MXNet's ``lazy_update``. ``slices`` squares the gradient
            of each occurrence of a token before it adds them up, like Keras' optimisers.
        repeats: how often a batch repeats each of its examples, each time with a part of the
            gradient: squares of ``slices`` depend on it.
        replicas: that normalise by their own shares of each batch.
        layer: the function of a layer with its way back.

    Returns:
        The mean loss of each batch, before the update of its step.

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
    for shares in training.shards(batch, steps, replicas):
        squares: dict[int, Array] | None = {} if update == "slices" else None
        loss, of_nodes = mean_gradients(training, parameters, shares, squares, layer)
        trajectory.append(loss)
        occurring = np.unique(np.concatenate([x for x, _ in shares])) if update == "lazy" else None
        if squares is not None:
            squares = {place: table / repeats for place, table in squares.items()}
        _descend(training, descents, of_nodes, occurring, squares)
    return trajectory


def mean_gradients(
    training: Objective,
    parameters: Sequence[Arrays],
    shares: Sequence[Batch],
    squares: dict[int, Array] | None = None,
    layer: Any = forward,
) -> tuple[float, list[Arrays]]:
    """The loss of a batch of which each share is normalised by itself, and its gradients.

    Args:
        parameters: of each node, float64.
        shares: equally large.
        squares: gets the sum of the squares of the slices of each embedding's gradient.
    """
    parts = []
    for x, labels in shares:
        wide = x.astype(np.float64) if training.vocabulary is None else x
        parts.append(gradients(training.graph, parameters, wide, labels, squares, layer))
    if squares is not None:
        squares.update({place: table / len(shares) ** 2 for place, table in squares.items()})
    of_losses, of_shares = zip(*parts, strict=True)
    mean = [
        [np.mean(arrays, axis=0) for arrays in zip(*of_node, strict=True)]
        for of_node in zip(*of_shares, strict=True)
    ]
    return float(np.mean(of_losses)), mean


def gradients(
    graph: Graph,
    parameters: Sequence[Arrays],
    x: NDArray[Any],
    labels: NDArray[Any],
    squares: dict[int, Array] | None = None,
    layer: Any = forward,
) -> tuple[float, list[Arrays]]:
    """The loss of a batch, and its gradient for the parameters of each node.

    Args:
        parameters: of each node, float64.
        x: the examples, float64, or tokens.
        squares: has the squares of each slice of embeddings' gradients added, by node.
        layer: the function of a layer with its way back.
    """
    logits, pull_backs = answer(graph, parameters, x, layer)
    loss, gradient = cross_entropy(logits, labels)
    for place, node in enumerate(graph.nodes):
        if squares is not None and isinstance(node.layer, layers.Embedding):
            pull_backs[place] = partial(_squaring, pull_backs[place], squares, place)
    return loss, accumulate(graph, pull_backs, gradient)


def _squaring(
    pull_back: PullBack, squares: dict[int, Array], place: int, gradient: Array
) -> tuple[Arrays, Arrays]:
    """The way back through an embedding; a table of squares is pulled back like the gradient."""
    squares[place] = squares.get(place, 0.0) + pull_back(gradient**2)[1][0]
    return pull_back(gradient)


def answer(
    graph: Graph, parameters: Sequence[Arrays], x: NDArray[Any], layer: Any = forward
) -> tuple[Array, list[PullBack]]:
    """The logits of a batch, and the way back through each node; see :func:`gradients`."""
    results: list[NDArray[Any]] = [x]
    pull_backs = []
    for node, arrays in zip(graph.nodes, parameters, strict=True):
        result, backward = layer(node.layer, arrays, *(results[source] for source in node.inputs))
        results.append(result)
        pull_backs.append(backward)
    return results[-1], pull_backs


def inference(
    graph: Graph, parameters: Sequence[Arrays], x: NDArray[Any], layer: Any = untrained
) -> NDArray[Any]:
    """The logits of a batch by a network in use that has not been trained: :func:`gradients`."""
    nodes = zip(graph.nodes, parameters, strict=True)
    functions = [partial(layer, node.layer, arrays) for node, arrays in nodes]
    logits: NDArray[Any] = graph.evaluate(functions, x)
    return logits


def accumulate(graph: Graph, pull_backs: Sequence[PullBack], gradient: Array) -> list[Arrays]:
    """The gradient for the parameters of each node, from that of the loss for the answer."""
    of_results: dict[int, Any] = {len(graph.nodes): gradient}
    of_parameters = []
    for place, node in reversed([*enumerate(graph.nodes, 1)]):
        of_inputs, of_node = pull_backs[place - 1](of_results.pop(place))
        of_parameters.append(of_node)
        for source, of_input in zip(node.inputs, of_inputs, strict=True):
            of_results[source] = of_results[source] + of_input if source in of_results else of_input
    return of_parameters[::-1]


def cross_entropy(logits: Array, labels: NDArray[Any]) -> tuple[float, Array]:
    """The mean softmax cross-entropy, in nats, and its gradient with respect to the logits."""
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
        array: float64; changed in place.

    Raises:
        DeclarationError: an optimiser without a reference.
    """

    def __init__(self, optimizer: Optimizer, array: Array) -> None:
        if type(optimizer) not in _DECREASES:
            known = ", ".join(kind.__name__ for kind in _DECREASES)
            raise DeclarationError(
                f"no reference for {optimizer!r}; add its own to those for {known}"
            )
        self._optimizer = optimizer
        self._decrease = _DECREASES[type(optimizer)]
        self._array = array
        self._moments = np.zeros((2, *array.shape))
        self._steps = 0

    def step(self, gradient: Array, rows: Rows = EVERY_ROW, squares: Array | None = None) -> None:
        """Update the array by one step of the optimiser.

        Args:
            gradient: of the array's shape.
            rows: the rows that change, each once, and their moments; the step counts for all.
            squares: taken for those of the gradient, of its shape; None for its own.
        """
        self._steps += 1
        squares = gradient**2 if squares is None else squares
        decrease, self._moments[:, rows] = self._decrease(
            self._optimizer, self._steps, gradient[rows], squares[rows], self._moments[:, rows]
        )
        self._array[rows] -= decrease


def _descend(
    training: Objective,
    descents: Sequence[Sequence[Descent]],
    of_nodes: Sequence[Arrays],
    occurring: Array | None,
    squares: Mapping[int, Array] | None,
) -> None:
    """Make a step of every parameter.

    Args:
        of_nodes: the gradients of each node's parameters.
        occurring: the rows of embedding tables that are updated; None for all.
        squares: of the gradients of each token's occurrences, by the place of the table; None
            where their sum is squared.
    """
    for place, node in enumerate(training.graph.nodes):
        is_table = isinstance(node.layer, layers.Embedding)
        rows = occurring if is_table and occurring is not None else EVERY_ROW
        of_slices = squares[place] if is_table and squares is not None else None
        for gradient, descent in zip(of_nodes[place], descents[place], strict=True):
            descent.step(gradient, rows, of_slices)


def _adam(
    adam: Adam, steps: int, gradient: Array, squares: Array, moments: Array
) -> tuple[Array, Array]:
    """Algorithm 1 of the paper, in the order that the end of its section 2 gives."""
    first = adam.beta_1 * moments[0] + (1.0 - adam.beta_1) * gradient
    second = adam.beta_2 * moments[1] + (1.0 - adam.beta_2) * squares
    rate = adam.learning_rate * np.sqrt(1.0 - adam.beta_2**steps) / (1.0 - adam.beta_1**steps)
    return rate * first / (np.sqrt(second) + adam.epsilon), np.stack([first, second])


def _rmsprop(
    rmsprop: RMSprop, _: int, gradient: Array, squares: Array, moments: Array
) -> tuple[Array, Array]:
    """The second moment alone."""
    second = rmsprop.rho * moments[1] + (1.0 - rmsprop.rho) * squares
    decrease = rmsprop.learning_rate * gradient / np.sqrt(second + rmsprop.epsilon)
    return decrease, np.stack([moments[0], second])


def _sgd(sgd: SGD, _: int, gradient: Array, __: Array, moments: Array) -> tuple[Array, Array]:
    """The first moment is the velocity."""
    velocity = sgd.momentum * moments[0] + gradient
    return sgd.learning_rate * velocity, np.stack([velocity, moments[1]])


_DECREASES: dict[type[Any], _Decrease] = {Adam: _adam, RMSprop: _rmsprop, SGD: _sgd}
