"""Recurrent layers, by textbook code for one unit after the other."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.terms.presets import Form, deepbench
from fwbench.workloads import RECURRENT, Operation
from fwbench.workloads.workload import Cost

UNITS = 3

FORM = Form("h{h}n{n}t{t}")

#: Those that are one layer, and the one whose sequences end sooner or later.
*LAYERS, DYNAMIC = RECURRENT

each_layer = pytest.mark.parametrize("operation", LAYERS, ids=lambda operation: str(operation.name))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def dot(row: Any, matrix: Any, column: int) -> float:
    return sum(float(a) * float(b) for a, b in zip(row, matrix[:, column], strict=True))


def rnn(x: Any, h: list[float], _c: list[float], weights: Any) -> None:
    w, u, b = weights
    h[:] = [math.tanh(dot(x, w, j) + dot(h, u, j) + b[j]) for j in range(UNITS)]


def lstm(x: Any, h: list[float], c: list[float], weights: Any) -> None:
    """One step; the gates are input, forget, cell, output."""
    w, u, b = weights
    before = list(h)
    for j in range(UNITS):
        i, f, g, o = (dot(x, w, k) + dot(before, u, k) + b[k] for k in range(j, 4 * UNITS, UNITS))
        c[j] = sigmoid(f) * c[j] + sigmoid(i) * math.tanh(g)
        h[j] = sigmoid(o) * math.tanh(c[j])


def gru(x: Any, h: list[float], _c: list[float], weights: Any) -> None:
    """One step; the gates are update, reset, new."""
    w, u, b, second = weights
    before = list(h)
    for j in range(UNITS):
        columns = range(j, 3 * UNITS, UNITS)
        z, r, n = (dot(x, w, k) + b[k] for k in columns)
        of_z, of_r, of_n = (dot(before, u, k) + second[k] for k in columns)
        new = math.tanh(n + sigmoid(r + of_r) * of_n)
        h[j] = sigmoid(z + of_z) * before[j] + (1 - sigmoid(z + of_z)) * new


STEPS: dict[str, Callable[..., None]] = {"rnn": rnn, "lstm": lstm, "gru": gru}


@each_layer
def test_references_are_textbook_code(operation: Operation) -> None:
    """The states of all units at all times, of two sequences."""
    size = FORM.read(f"h{UNITS}n2t4")
    x, *weights = operation.operands(size)
    expected = []
    for sequence in x:
        h, c = [0.0] * UNITS, [0.0] * UNITS
        states = []
        for now in sequence:
            STEPS[operation.name](now, h, c, weights)
            states.append(list(h))
        expected.append(states)
    result = operation.reference(x, *weights, *operation.parameters(size))
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("of", "gates", "biases"), [*zip(LAYERS, (1, 4, 3), (1, 1, 2), strict=True)]
)
def test_costs(of: Operation, gates: int, biases: int) -> None:
    """Two products a step, three times with the gradient; every array once."""
    size = FORM.read("h10n2t5")
    forward, backward = of.cost_of("forward", size), of.cost_of("backward", size)
    assert forward is not None
    assert backward is not None
    operands, result = 100 + gates * 10 * (20 + biases), 100
    assert forward.flops // 4_000 == gates  # the rest is pointwise
    assert forward.elements == operands + result
    assert backward == Cost(3 * forward.flops, 3 * operands + 2 * result)


def test_a_dynamic_rnn_is_an_lstm_for_each_sequence_as_long_as_it_is() -> None:
    """Behind the end of a sequence states are zero; the last state is the one at its end."""
    size = FORM.read(f"h{UNITS}n3t5")
    x, *weights, lengths = DYNAMIC.operands(size)
    result, last = DYNAMIC.reference(x, *weights, lengths, *DYNAMIC.parameters(size))
    assert sorted(lengths) == [4, 5, 5]
    for sequence, length, states, state in zip(x, lengths, result, last, strict=True):
        h, c = [0.0] * UNITS, [0.0] * UNITS
        for now, expected in zip(sequence[:length], states, strict=False):
            lstm(now, h, c, weights)
            np.testing.assert_allclose(expected, h, rtol=1e-12)
        np.testing.assert_allclose(state, h, rtol=1e-12)
        assert not states[length:].any()


def test_sequences_have_from_half_of_the_steps_to_all() -> None:
    """In another order when they are changed; so the work is the same."""
    size = FORM.read("h3n8t16")
    *_, lengths = DYNAMIC.operands(size)
    *_, changed = DYNAMIC.changed_operands(size, 1, DYNAMIC.operands(size))
    assert sorted(lengths) == sorted(changed) == [*range(9, 17)]
    assert list(lengths) != list(changed)


def test_what_is_behind_the_ends_of_sequences_costs_nothing() -> None:
    size = FORM.read("h10n8t16")
    forward, backward = DYNAMIC.cost_of("forward", size), DYNAMIC.cost_of("backward", size)
    assert forward is not None
    assert backward is not None
    of_a_step = 4 * 2 * 2 * 10 * 10 + 17 * 10
    assert forward.flops == sum(range(9, 17)) * of_a_step
    assert backward.flops == 3 * forward.flops
    states, weights, lengths = 8 * 16 * 10, 4 * 10 * (20 + 1), 8
    assert forward.elements == states + weights + states + 8 * 10 + lengths


def test_deepbench_has_its_shapes() -> None:
    assert {name: len(texts) for name, texts in deepbench("recurrent").items()} == {
        "rnn": 14,
        "lstm": 37,
        "gru": 72,
    }
    for texts in deepbench("recurrent").values():
        assert len({FORM.read(text) for text in texts}) == len(texts)
