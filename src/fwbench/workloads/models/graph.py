"""A network as data: its layers in order, and which results each takes.

A network is a function from the value of its input to that of its answers; layers are called with
values, so that branches are said as in any program::

    def residual(x):
        return Relu()(Add()(x, Conv(64, 3, same=True, relu=False)(x)))

:func:`trace` calls it once and keeps what it did. From that a framework builds its own model,
and parameters, costs and reference follow without another description.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.workloads.models.layer import Arrays, Layer, Node, Shape, Value
from fwbench.workloads.models.layers import Dense, Flatten

#: How many dimensions an image has in addition to its channels.
_PLACES = 2

#: From the value of the input to that of the logits.
Network = Callable[[Value], Value]

_Size = TypeVar("_Size")

#: From a function of one result to the same function, whose own results are not kept for the
#: backward pass, which computes them once more.
Recomputed = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def sequential(*layers: Layer) -> Network:
    """A network whose layers follow one another."""

    def network(x: Value) -> Value:
        for layer in layers:
            x = layer(x)
        return x

    return network


def of_size(network: Callable[[_Size, Value], Value]) -> Callable[[_Size], Network]:
    """The function from a size to a network, of one that takes the size and the input's value."""

    @wraps(network)
    def sized(size: _Size) -> Network:
        return partial(network, size)

    return sized


@dataclass(frozen=True, eq=False)
class Graph:
    """Layers of a network, and their connections."""

    #: Of the input, without the batch.
    shape: Shape
    #: In an order in which they can be computed; the last is the answer.
    nodes: tuple[Node, ...]
    #: For each node the image that its input was before it was flattened; None for an input that is
    #: the same with channels first and last.
    flattened: tuple[Shape | None, ...]

    @property
    def output(self) -> Shape:
        """The shape of the answer, without the batch."""
        return self.nodes[-1].output

    @property
    def parameters(self) -> int:
        """Number of trained parameters."""
        return sum(weight.size for node in self.nodes for weight in node.weights)

    @property
    def multiply_adds(self) -> int:
        """Multiplications with an addition in one forward pass of one example, as published."""
        total, examples = 0, [1]
        for node in self.nodes:
            places = examples[node.inputs[0]]
            total += places * node.layer.multiply_adds(*node.shapes)
            examples.append(places * (node.shapes[0][0] if node.layer.by_place else 1))
        return total

    @property
    def terms(self) -> int:
        """Largest number of terms that an element of a result adds up, of kernels."""
        kernels = (node.weights[0] for node in self.nodes if node.weights)
        return max((math.prod(kernel.shape[:-1]) for kernel in kernels), default=1)

    def initial(self, seed: int) -> list[Arrays]:
        """The initial parameters of each node, the same in every process; float64."""
        rng = np.random.default_rng(seed)
        # In float32's precision, so that every framework begins with exactly the same numbers.
        return [
            [weight.draw(rng).astype(np.float32).astype(np.float64) for weight in node.weights]
            for node in self.nodes
        ]

    def channels_first(self, parameters: Sequence[Arrays]) -> list[Arrays]:
        """Parameters for a framework whose images have the channels first, also when flattened.

        Args:
            parameters: of each node, as :meth:`initial` gives them.

        Returns:
            Of each node: kernels of convolutions (filters, channels in, height, width), of dense
            layers (units, in), of LSTMs (4 units, in) and (4 units, units), of GRUs (3 units, in)
            and (3 units, units), each with its bias; that of an LSTM is followed by zeros.
        """
        converted = []
        for image, node, arrays in zip(self.flattened, self.nodes, parameters, strict=True):
            rows = _channels_first_rows(arrays, image) if image else arrays
            converted.append(node.layer.outputs_first(rows))
        return converted

    @cached_property
    def segments(self) -> tuple[range, ...]:
        """The indices of nodes, in parts that take one result and pass on one.

        The parts have about as many elements of results each, and are about as many as the square
        root of the places where the network can be cut so: a training that keeps only what goes
        from part to part, and the results of one part at a time, needs memory for the square root
        of the depth (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", section 4).
        """
        cuts = self._cuts
        sizes = [math.prod(node.output) for node in self.nodes]
        enough = sum(sizes) / round(math.sqrt(len(cuts)))
        segments = [range(0)]
        for cut in cuts:
            start = segments[-1].stop
            if cut == len(sizes) or sum(sizes[start:cut]) >= enough:
                segments.append(range(start, cut))
        return tuple(segments[1:])

    @property
    def _cuts(self) -> list[int]:
        """The places of results that are all that is needed of the nodes up to there."""
        cuts, needed = [], 0
        for place in range(1, len(self.nodes) + 1):
            needed = max(needed, self._last_users.get(place - 1, 0))
            if needed <= place:
                cuts.append(place)
        return cuts

    def divided(self, number: int) -> "tuple[Graph, ...]":
        """The network in parts, one a device: each takes what the one before returns.

        Each has about as many layers with parameters: an LSTM above the table of words, and another
        one below the answers, as MXNet's example of a model-parallel LSTM has them.

        Raises:
            DeclarationError: there are fewer places where it can be cut.
        """
        layers = list(itertools.accumulate(bool(node.weights) for node in self.nodes))
        cuts = [0]
        for part in range(1, number):
            wanted = part * layers[-1] / number
            places = [
                cut for cut in self._cuts if cuts[-1] < cut and 0 < layers[cut - 1] < layers[-1]
            ]
            if not places:
                raise DeclarationError(
                    f"the network has {layers[-1]} layer(s) with parameters, and cannot be divided "
                    f"among {number} devices; give it more layers, or ask for fewer devices"
                )
            cuts.append(min(places, key=lambda cut: abs(layers[cut - 1] - wanted)))
        return tuple(self._between(*ends) for ends in itertools.pairwise([*cuts, len(self.nodes)]))

    def _between(self, start: int, stop: int) -> "Graph":
        """The nodes of a part that takes one result, as a network."""
        nodes = tuple(
            replace(node, inputs=tuple(place - start for place in node.inputs))
            for node in self.nodes[start:stop]
        )
        return Graph(nodes[0].shapes[0], nodes, self.flattened[start:stop])

    def evaluate(
        self, functions: Sequence[Callable[..., Any]], x: Any, recomputed: Recomputed | None = None
    ) -> Any:
        """The network's answer, each result kept no longer than it is needed.

        Args:
            functions: of each node, from the results that it takes to its own.
            recomputed: applied to all segments but the last, whose results the backward pass
                needs at once.
        """
        if recomputed is None:
            return self.part(range(len(self.nodes)), functions, x)
        *segments, last = self.segments
        for segment in segments:
            x = recomputed(partial(self.part, segment, functions))(x)
        return self.part(last, functions, x)

    def part(self, nodes: range, functions: Sequence[Callable[..., Any]], x: Any) -> Any:
        """The result of the last of some nodes that follow one another.

        Args:
            nodes: one of :attr:`segments`, or several that follow one another.
            functions: of each node of the network, from the results that it takes to its own.
        """
        results = {nodes.start: x}
        for place, (inputs, last_uses) in enumerate(self._wiring[nodes.start : nodes.stop]):
            index = nodes.start + place
            results[index + 1] = functions[index](*[results[source] for source in inputs])
            for last_use in last_uses:
                del results[last_use]
        return results[nodes.stop]

    @cached_property
    def _wiring(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """For each node the results that it takes, and those that no node takes after it."""
        return tuple(
            (
                node.inputs,
                tuple(source for source, user in self._last_users.items() if user == place),
            )
            for place, node in enumerate(self.nodes, 1)
        )

    @cached_property
    def _last_users(self) -> dict[int, int]:
        """By the place of each result that is taken, that of the last which takes it."""
        return {source: place for place, node in enumerate(self.nodes, 1) for source in node.inputs}


def trace(network: Network, shape: Shape) -> Graph:
    """Work of a network on an input.

    Raises:
        DeclarationError: no layer is called, a result is left unused, or a flattened image is
            taken by a layer that would have to know the order of its elements.
    """
    nodes: list[Node] = []
    answer = network(Value(nodes, 0, shape))
    if not nodes:
        raise DeclarationError(
            f"the network calls no layer with its input of the shape {shape}; call one, and return "
            "its result"
        )
    used = {answer.place, *(source for node in nodes for source in node.inputs)}
    unused = [node.layer for place, node in enumerate(nodes, 1) if place not in used]
    if unused:
        raise DeclarationError(
            f"the network computes {unused} and does not use the result; return the last value, "
            "and use the result of every layer that is called"
        )
    return Graph(shape, tuple(nodes), tuple(_flattened(nodes)))


def _flattened(nodes: Sequence[Node]) -> list[Shape | None]:
    """For each node the image that its input was before it was flattened."""
    images: list[Shape | None] = [None]
    of_inputs = []
    for node in nodes:
        image, *others = (images[place] for place in node.inputs)
        of_inputs.append(image)
        follows = node.layer.elementwise and all(other == image for other in others)
        if isinstance(node.layer, Flatten):
            images.append(image or _reordered(node.shapes[0]))
        elif follows:
            images.append(image)
        elif isinstance(node.layer, Dense) or not any((image, *others)):
            images.append(None)
        else:
            raise DeclarationError(
                f"{node.layer} takes an image that was flattened, whose elements are in another "
                "order where channels come first; call Dense with it, or this layer before Flatten"
            )
    if images[-1]:
        raise DeclarationError(
            f"the network's answer is a flattened image of the shape {images[-1]}, whose elements "
            "are in another order where channels come first; end with Dense"
        )
    return of_inputs


def _reordered(shape: Shape) -> Shape | None:
    """An image whose elements are in another order where channels come first; None for others."""
    *places, channels = shape
    is_image = len(places) == _PLACES
    return shape if is_image and channels > 1 and math.prod(places) > 1 else None


def _channels_first_rows(arrays: Arrays, image: Shape) -> Arrays:
    """A dense layer's parameters for an image that was flattened with its channels first."""
    if not arrays:
        return arrays
    kernel, *rest = arrays
    rows: NDArray[np.float64] = kernel.reshape(*image, -1).transpose(2, 0, 1, 3)
    return [rows.reshape(kernel.shape), *rest]
