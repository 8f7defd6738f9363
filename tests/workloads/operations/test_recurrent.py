"""Recurrent layers, by textbook code for one unit after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.workloads import RECURRENT, Operation
from fwbench.workloads.operations.recurrent import DEEPBENCH, FORM
from fwbench.workloads.workload import Cost

UNITS = 3

each = pytest.mark.parametrize("of", RECURRENT, ids=lambda of: str(of.name))


def sigmoid(x: float) -> float:
    """By the exponential."""
    return 1 / (1 + math.exp(-x))


def dot(row: Any, matrix: Any, column: int) -> float:
    """Of a row with a column of a matrix."""
    return sum(float(a) * float(b) for a, b in zip(row, matrix[:, column], strict=True))


def rnn(x: Any, h: list[float], _c: list[float], weights: Any) -> None:
    """One step of a simple layer."""
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


@each
def test_references_are_textbook_code(of: Operation) -> None:
    """The states of all units at all times, of two sequences."""
    size = FORM.read(f"h{UNITS}n2t4")
    x, *weights = of.operands(size)
    expected = []
    for sequence in x:
        h, c = [0.0] * UNITS, [0.0] * UNITS
        states = []
        for now in sequence:
            STEPS[of.name](now, h, c, weights)
            states.append(list(h))
        expected.append(states)
    found = of.reference(x, *weights, *of.parameters(size))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("of", "gates", "biases"), [*zip(RECURRENT, (1, 4, 3), (1, 1, 2), strict=True)]
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


def test_deepbench_has_its_shapes() -> None:
    """As many as its file lists, one of them twice, and each in the form of the operations."""
    assert {name: len(texts) for name, texts in DEEPBENCH.items()} == {
        "rnn": 14,
        "lstm": 37,
        "gru": 72,
    }
    for texts in DEEPBENCH.values():
        assert len({FORM.read(text) for text in texts}) == len(texts)
