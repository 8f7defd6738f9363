"""Networks at a point where no rounding decides: weights that keep ReLUs away from zero.

A gradient is not continuous where the input of a ReLU is 0, and with as many inputs as a network
has, some are so near to it that rounding errors decide on their side. So biases, and offsets of
batch normalization, are moved a little: where a channel's inputs of a ReLU, of all examples and
places, are side by side, zero comes into the middle of the widest gap between two of them. The gap
is looked for in the middle half of the inputs, so that a part of them stays on each side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.models import layers
from fwbench.workloads.models.gradients import Result, RunnerUp, forward
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.models.layer import Arrays, Layer
from fwbench.workloads.objective import Objective

#: The results of a node: of each batch, which batch normalization goes by.
Results = list[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class StableObjective(Objective):
    """A network with its weights at such a point for the first two batches of the check."""

    batch: int = field(kw_only=True)
    #: That share each batch.
    replicas: int = field(kw_only=True)

    def initial(self) -> list[Arrays]:
        """The initial parameters, of which biases and offsets are moved."""
        return [[array.copy() for array in arrays] for arrays in self._moved]  # a step changes them

    @cached_property
    def _moved(self) -> list[Arrays]:
        least, parts = self.reduced(self.batch, self.replicas)
        batches = [x for shares in self.shards(least, 2, parts) for x, _ in shares]
        examples = [x if self.vocabulary is not None else x.astype(np.float64) for x in batches]
        return _moved(self.graph, super().initial(), examples)


def with_stable_weights(objective: Objective, batch: int, replicas: int = 1) -> Objective:
    """The same network, at a point where rounding decides on no ReLU."""
    given = {name: getattr(objective, name) for name in Objective.__dataclass_fields__}
    return StableObjective(**given, batch=batch, replicas=replicas)


def to_share(objective: Objective, batch: int, replicas: int) -> Objective:
    """The same network for replicas, whose gradient is compared as it is exchanged.

    With stable weights where it is normalized by batch, which amplifies what ReLUs decide.
    """
    normalized = bool(objective.normalized)
    return with_stable_weights(objective, batch, replicas) if normalized else objective


def tie_breaks_flipped(nearly: float) -> Callable[..., Result]:
    """Layers whose max pools choose the other one of elements that are as good as equal.

    Args:
        nearly: what they may differ by, relative to the root mean square of all.
    """

    def flipped(layer: Layer, parameters: Arrays, *inputs: NDArray[Any]) -> Result:
        if isinstance(layer, layers.MaxPool):
            layer = RunnerUp(layer.size, layer.stride, layer.padding, nearly)
        return forward(layer, parameters, *inputs)

    return flipped


def different(examples: NDArray[Any]) -> NDArray[Any]:
    """The examples of a batch that repeats some, each once, in their order."""
    return examples[list({example.tobytes(): i for i, example in enumerate(examples)}.values())]


def _moved(graph: Graph, parameters: list[Arrays], batches: Sequence[NDArray[Any]]) -> list[Arrays]:
    results: list[Results] = [[*batches]]

    def computed(place: int) -> Results:
        node = graph.nodes[place - 1]
        inputs = zip(*(results[source] for source in node.inputs), strict=True)
        return [forward(node.layer, parameters[place - 1], *given)[0] for given in inputs]

    for place, node in enumerate(graph.nodes, 1):
        results.append(computed(place))
        owner = _owner(graph, place)
        if owner is None:
            continue
        rectified = _rectified(node.layer, parameters[place - 1], [results[i] for i in node.inputs])
        offset = parameters[owner - 1][1]
        # In float32's precision, as all weights.
        moved = (offset - _middles(rectified)).astype(np.float32).astype(np.float64)
        parameters[owner - 1] = [parameters[owner - 1][0], moved]
        for later in range(owner, place + 1):
            results[later] = computed(later)
    return parameters


def _owner(graph: Graph, place: int) -> int | None:
    """The place of the node whose bias or offset moves what a node rectifies; None if none does."""
    layer = graph.nodes[place - 1].layer
    if isinstance(layer, layers.Conv | layers.Dense) and layer.relu:
        return place if len(layer.weights(graph.nodes[place - 1].shapes[0])) > 1 else None
    if isinstance(layer, layers.Relu):
        return _movable(graph, graph.nodes[place - 1].inputs[0])
    return None


def _movable(graph: Graph, place: int) -> int | None:
    """The place of a node by whose bias or offset a result is moved, and no other is."""
    users = sum(node.inputs.count(place) for node in graph.nodes)
    if place == 0 or users != 1:
        return None
    node = graph.nodes[place - 1]
    if isinstance(node.layer, layers.BatchNorm):
        return place
    if isinstance(node.layer, layers.Conv | layers.Dense) and not node.layer.relu:
        return place if len(node.weights) > 1 else None
    if isinstance(node.layer, layers.Add):
        return next(filter(None, (_movable(graph, source) for source in node.inputs)), None)
    return None


def _rectified(layer: Any, parameters: Arrays, inputs: Sequence[Results]) -> Results:
    """Inputs of a rectifying layer, of each batch."""
    if isinstance(layer, layers.Relu):
        return inputs[0]
    plain = replace(layer, relu=False)
    return [forward(plain, parameters, x)[0] for x in inputs[0]]


def _middles(rectified: Results) -> NDArray[np.float64]:
    """For each channel the middle of the widest gap in the middle half of its numbers."""
    numbers = np.sort(np.concatenate([x.reshape(-1, x.shape[-1]) for x in rectified]), axis=0)
    quarter = len(numbers) // 4
    central = numbers[quarter : len(numbers) - quarter]
    if len(central) < 2:  # noqa: PLR2004 (there is no gap)
        return np.zeros(numbers.shape[-1])
    widest = np.diff(central, axis=0).argmax(0)[None]
    below, above = (np.take_along_axis(central, widest + i, 0)[0] for i in (0, 1))
    # A channel of equal numbers has no gap, and stays where it is.
    return np.where(above > below, (below + above) / 2, 0.0)
