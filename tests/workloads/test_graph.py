"""Networks as functions: what they are traced into, and what cannot be one."""

from __future__ import annotations

import pytest

from fwbench.errors import DeclarationError
from fwbench.workloads.models.graph import sequential, trace
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import Add, Concat, Conv, Dense, Flatten, MaxPool, Relu


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


def test_a_result_is_dropped_after_its_last_use() -> None:
    """What a framework no longer needs is not kept by fwbench."""
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


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda x: [Dense(2)(x), Relu()(x)][1], r"Dense\(units=2, .* does not use the result"),
        (lambda x: [Dense(2)(x), Relu()(x)][0], "Relu.* does not use the result"),
        (lambda x: Add()(x, Dense(2)(x)), r"Add needs results of one shape, .* \(2,\)"),
        (lambda x: Concat()(x, Value([], 0, (4,))), "values of two networks"),
    ],
    ids=["unused", "not the last", "shapes", "two networks"],
)
def test_what_is_no_network_is_refused(network: object, message: str) -> None:
    """By name of the layer, when it is traced."""
    with pytest.raises(DeclarationError, match=message):
        trace(network, (4,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "network", [sequential(Conv(2, 5), Flatten()), sequential(MaxPool(5), Flatten())]
)
def test_an_input_that_is_too_small_is_refused(network: object) -> None:
    """With the layer, the shape it was given and the shape that would remain."""
    with pytest.raises(DeclarationError, match=r"leaves nothing of an input .* \(4, 4, 1\)"):
        trace(network, (4, 4, 1))  # type: ignore[arg-type]
