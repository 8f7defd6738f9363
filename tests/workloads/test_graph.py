"""Networks as functions: what they are traced into, and what cannot be one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.errors import DeclarationError
from fwbench.workloads import word_lm_step
from fwbench.workloads.models.graph import Graph, sequential, trace
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import (
    LSTM,
    Add,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    MaxPool,
    Positions,
    Relu,
    Tokens,
)


def _residual(x: Value) -> Value:
    narrow = Conv(4, 3, same=True)(x)
    return Relu()(Add()(narrow, Conv(4, 1)(x)))


def test_a_network_is_traced_into_nodes_with_the_places_of_what_they_take() -> None:
    """The input has the place 0; branches take the same result."""
    graph = trace(_residual, (5, 5, 3))
    assert [node.inputs for node in graph.nodes] == [(0,), (0,), (1, 2), (3,)]
    assert [node.output for node in graph.nodes] == [(5, 5, 4)] * 4
    assert graph.output == (5, 5, 4)


def test_parameters_and_multiply_adds_are_counted_from_the_layers() -> None:
    """A kernel's element counts once for each place of the result."""
    graph = trace(_residual, (5, 5, 3))
    assert graph.parameters == (9 * 3 * 4 + 4) + (3 * 4 + 4)
    assert graph.multiply_adds == 25 * (9 * 3 * 4 + 3 * 4)


def test_a_word_for_each_place_counts_for_each() -> None:
    """Also behind the layer that makes an example of every place."""
    graph = trace(sequential(Embedding(50, 8), Tokens(), Dense(50, relu=False)), (6,))
    assert graph.multiply_adds == 6 * 8 * 50


def test_a_result_is_dropped_after_its_last_use() -> None:
    alive: set[int] = set()

    class Tracked:
        def __init__(self) -> None:
            alive.add(id(self))

        def __del__(self) -> None:
            alive.discard(id(self))

    most = []

    def call(*_: object) -> Tracked:
        most.append(len(alive))
        return Tracked()

    graph = trace(sequential(*[Relu()] * 5), (3,))
    graph.evaluate([call] * 5, Tracked())
    assert max(most) <= 2


def _branched(x: Value) -> Value:
    """Four blocks of one result each, which take two results inside."""
    for _ in range(4):
        x = Relu()(Add()(x, Relu()(x)))
    return Dense(2)(x)


def test_segments_are_cut_where_one_result_is_passed_on() -> None:
    """Never within a branch; about the square root of these places, and of about one size."""
    graph = trace(_branched, (3,))
    # A sum is a place to cut, and so are the ReLU after it and the answer: nine.
    assert graph.segments == (range(5), range(5, 11), range(11, 13))


def test_segments_have_about_as_many_elements() -> None:
    """A large result is a segment of its own, unlike many small ones."""
    graph = trace(sequential(Dense(100), *[Dense(10)] * 7, Dense(50)), (3,))
    assert graph.segments == (range(1), range(1, 9))


def test_segments_of_a_single_layer() -> None:
    graph = trace(Dense(2), (3,))
    assert graph.segments == (range(1),)
    assert graph.evaluate([lambda x: x + 1], 1, lambda _: pytest.fail("recomputed")) == 2


def test_all_segments_but_the_last_are_recomputed() -> None:
    """Each from what the one before it has passed on; the answer is the same."""
    graph = trace(_branched, (3,))
    functions = [
        lambda *inputs, place=index: place + sum(inputs) for index in range(len(graph.nodes))
    ]
    recomputed = []

    def twice(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(x: Any) -> Any:
            recomputed.append(x)
            assert run(x) == run(x)
            return run(x)

        return call

    assert graph.evaluate(functions, 1, twice) == graph.evaluate(functions, 1)
    first, second = recomputed
    assert first == 1
    assert second == graph.part(graph.segments[0], functions, 1)


def test_a_divided_network_has_the_same_layers() -> None:
    """Each part takes what the one before returns; no branch is cut."""

    def network(x: Value) -> Value:
        x = Add()(x, Dense(3)(Relu()(x)))
        return Dense(2)(Add()(x, Dense(3)(x)))

    graph = trace(network, (3,))
    parts = graph.divided(2)
    assert [len(part.nodes) for part in parts] == [3, 3]
    assert [node.layer for part in parts for node in part.nodes] == [n.layer for n in graph.nodes]
    assert parts[0].output == parts[1].shape
    assert sum(part.parameters for part in parts) == graph.parameters
    functions = [
        lambda *inputs, place=index: place + sum(inputs) for index in range(len(graph.nodes))
    ]
    passed_on = parts[0].evaluate(functions[:3], 1)
    assert parts[1].evaluate(functions[3:], passed_on) == graph.evaluate(functions, 1)


def test_a_network_is_divided_between_its_lstms() -> None:
    """The table of words and an LSTM, an LSTM and the answers."""
    step = word_lm_step
    parts = step.at(step.size_of("b2t4l2u8v30")).graph.divided(2)
    names = [[type(node.layer).__name__ for node in part.nodes] for part in parts]
    assert names == [["Embedding", "LSTM"], ["LSTM", "Tokens", "Dense"]]


def test_a_flattened_image_is_known_in_the_part_that_takes_it() -> None:
    """Rows of a dense layer are in the order of channels that come first."""
    graph = trace(sequential(Conv(2, 3), Flatten(), Dense(3)), (4, 4, 1))
    converted = graph.channels_first(graph.initial(0))
    arrays, placed = iter(graph.initial(0)), []
    for part in graph.divided(2):
        placed += part.channels_first([next(arrays) for _ in part.nodes])
    for first, other in zip(placed, converted, strict=True):
        assert all(map(np.array_equal, first, other))


def test_too_few_layers_to_divide() -> None:
    graph = trace(sequential(Dense(2), Relu()), (3,))
    with pytest.raises(
        DeclarationError, match=r"has 1 layer\(s\) with parameters, .* among 2 devices"
    ):
        graph.divided(2)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda x: [Dense(2)(x), Relu()(x)][1], r"Dense\(units=2, .* does not use the result"),
        (lambda x: [Dense(2)(x), Relu()(x)][0], "Relu.* does not use the result"),
        (lambda x: Add()(x, Dense(2)(x)), r"Add needs results of one shape, .* \(2,\)"),
        (lambda x: Concat()(x, Value([], 0, (4,))), "values of two networks"),
        (lambda x: x, r"calls no layer with its input of the shape \(4,\); call one"),
    ],
    ids=["unused", "not the last", "shapes", "two networks", "nothing"],
)
def test_what_is_no_network_is_refused(network: object, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        trace(network, (4,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "network", [sequential(Conv(2, 5), Flatten()), sequential(MaxPool(5), Flatten())]
)
def test_an_input_that_is_too_small_is_refused(network: object) -> None:
    """With the layer, the shape it was given and the shape that would remain."""
    with pytest.raises(DeclarationError, match=r"leaves nothing of an input .* \(4, 4, 1\)"):
        trace(network, (4, 4, 1))  # type: ignore[arg-type]


def _rows(graph: Graph) -> list[int]:
    """Where the elements that the last layer's rows belong to lie with channels first."""
    *rest, (kernel, bias) = graph.initial(0)
    kernel = np.arange(len(kernel), dtype=np.float64)[:, None] + 0 * kernel
    (*_, (converted, _)) = graph.channels_first([*rest, [kernel, bias]])
    return [int(row) for row in converted[0]]


#: Of an image of two pixels with three channels: the places of its elements, channels first.
_CHANNELS_LAST = [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize(
    "network",
    [
        sequential(Flatten(), Dense(2)),
        sequential(Flatten(), Flatten(), Dense(2)),
        sequential(Flatten(), Relu(), Dropout(0.5), Dense(2)),
        lambda x: Dense(2)(Add()(Flatten()(x), Flatten()(Relu()(x)))),
    ],
    ids=["flattened", "twice", "elementwise", "added"],
)
def test_rows_of_a_flattened_image_are_converted(network: object) -> None:
    """Flattened once or twice, also when its elements were changed one by one."""
    assert _rows(trace(network, (1, 2, 3))) == _CHANNELS_LAST  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (sequential(Embedding(5, 3), Flatten(), Dense(2)), (2,)),
        (sequential(Flatten(), BatchNorm(), Dense(2)), (1, 1, 6)),
        (sequential(Flatten(), BatchNorm(), Dense(2)), (2, 3, 1)),
        (sequential(Flatten(), Dense(6), BatchNorm(), Dense(2)), (1, 2, 3)),
    ],
    ids=["sequence", "one place", "one channel", "behind Dense"],
)
def test_rows_of_anything_else_stay(network: object, shape: tuple[int, ...]) -> None:
    assert _rows(trace(network, shape)) == [*range(6)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (sequential(Flatten(), BatchNorm(), Dense(2)), r"BatchNorm\(.* takes an image that was"),
        (sequential(Flatten(), LayerNorm(), Dense(2)), r"LayerNorm\(.* takes an image that was"),
        (lambda x: Dense(2)(Concat()(Flatten()(x), Flatten()(x))), "Concat.* call Dense with it"),
        (lambda x: Dense(2)(Add()(Dense(6)(Flatten()(x)), Flatten()(x))), "Add.* takes an image"),
        (sequential(Flatten()), r"answer is a flattened image of the shape \(1, 2, 3\)"),
        (sequential(Flatten(), Relu()), "answer is a flattened image"),
    ],
    ids=["BatchNorm", "LayerNorm", "Concat", "Add", "answer", "answer of Relu"],
)
def test_a_flattened_image_goes_no_further_than_its_order_is_known(
    network: object, message: str
) -> None:
    """Parameters of one channel would be used for another where channels come first."""
    with pytest.raises(DeclarationError, match=message):
        trace(network, (1, 2, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "network",
    [
        sequential(Embedding(5, 3), BatchNorm(), LSTM(2)),
        lambda x: LSTM(2)(Concat()(Embedding(5, 3)(x), Positions()(Embedding(5, 3)(x)))),
    ],
    ids=["BatchNorm", "Concat"],
)
def test_layers_of_images_refuse_sequences(network: object) -> None:
    """Their channels come last in every framework, and those of images do not."""
    with pytest.raises(DeclarationError, match=r"given a sequence of the shape \(4, 3\); norm"):
        trace(network, (4,))  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [{"stride": 2}, {"padding": 1}, {"padding": (0, 1)}])
def test_same_has_one_meaning(more: dict[str, Any]) -> None:
    """With a stride frameworks put the zeros in different places."""
    with pytest.raises(DeclarationError, match=r"asks for zeros by same, .* instead of same"):
        Conv(2, 3, same=True, **more)


def test_vectors_are_normalized_and_concatenated() -> None:
    """Channels are all that they have."""
    graph = trace(lambda x: Concat()(BatchNorm()(Dense(3)(x)), x), (4,))
    assert graph.output == (7,)
