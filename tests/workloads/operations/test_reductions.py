"""Reductions against the textbook, without NumPy; and what their operands are made to be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.presets import Shape
from fwbench.workloads import REDUCTIONS, Operation
from fwbench.workloads.workload import Cost

BY_NAME = {of.name: of for of in REDUCTIONS}

each = pytest.mark.parametrize("of", REDUCTIONS, ids=lambda of: str(of.name))

Rows = list[list[float]]


def shape(of: Operation, text: str) -> Shape:
    """A size of an operation."""
    assert of.form is not None
    return of.form.read(text)


def columns(rows: Rows) -> Rows:
    """The same matrix, transposed."""
    return [list(column) for column in zip(*rows, strict=True)]


def mean(row: list[float]) -> float:
    """The arithmetic mean."""
    return math.fsum(row) / len(row)


def variance(row: list[float]) -> float:
    """The mean of the squares, less the square of the mean."""
    return mean([x * x for x in row]) - mean(row) ** 2


FORMULAS: dict[str, Callable[[Rows], Any]] = {
    "sum": lambda rows: math.fsum(map(math.fsum, rows)),
    "sum_columns": lambda rows: [math.fsum(column) for column in columns(rows)],
    "sum_rows": lambda rows: [math.fsum(row) for row in rows],
    "mean": lambda rows: [mean(row) for row in rows],
    "variance": lambda rows: [variance(row) for row in rows],
    "std": lambda rows: [math.sqrt(variance(row)) for row in rows],
    "max": lambda rows: [max(row) for row in rows],
    "min": lambda rows: [min(row) for row in rows],
    "prod": lambda rows: [math.prod(row) for row in rows],
    "norm": lambda rows: math.hypot(*(x for row in rows for x in row)),
    "logsumexp": lambda rows: [math.log(math.fsum(map(math.exp, row))) for row in rows],
    "cumsum": lambda rows: [[math.fsum(row[: i + 1]) for i in range(len(row))] for row in rows],
    "any": lambda rows: [True in row for row in rows],
    "argmax": lambda rows: [row.index(max(row)) for row in rows],
    "argmin": lambda rows: [row.index(min(row)) for row in rows],
}


@each
@pytest.mark.parametrize("text", ["1x1", "3x5", "7x2"])
def test_references_compute_what_their_name_says(of: Operation, text: str) -> None:
    """Of matrices that are wide and high."""
    (x,) = of.operands(shape(of, text))
    found, expected = of.reference(x), FORMULAS[of.name](x.tolist())
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_logsumexp_does_not_overflow() -> None:
    """Nor is it minus infinity where all terms vanish."""
    found = BY_NAME["logsumexp"].reference(np.array([[1000.0, 1000.0], [-1000.0, -1000.0]]))
    np.testing.assert_allclose(found, np.array([1000.0, -1000.0]) + math.log(2), rtol=1e-15)


#: At 3 x 5: FLOPs and elements, forward and with the gradient.
COSTS = {
    "sum": (Cost(15, 16), Cost(15, 32)),
    "sum_columns": (Cost(15, 20), Cost(15, 40)),
    "sum_rows": (Cost(15, 18), Cost(15, 36)),
    "mean": (Cost(15, 18), Cost(15, 36)),
    "variance": (Cost(60, 18), Cost(90, 51)),
    "std": (Cost(60, 18), Cost(90, 51)),
    "max": (Cost(15, 18), Cost(30, 51)),
    "min": (Cost(15, 18), Cost(30, 51)),
    "prod": (Cost(15, 18), Cost(30, 51)),
    "norm": (Cost(30, 16), Cost(45, 47)),
    "logsumexp": (Cost(60, 18), Cost(105, 51)),
    "cumsum": (Cost(15, 30), Cost(30, 60)),
    "any": (Cost(15, 18), None),
    "argmax": (Cost(15, 18), None),
    "argmin": (Cost(15, 18), None),
}


@each
def test_costs(of: Operation) -> None:
    """A matrix is read once; a gradient that depends on it reads it again."""
    size = shape(of, "3x5")
    assert (of.cost_of("forward", size), of.cost_of("backward", size)) == COSTS[of.name]


@pytest.mark.parametrize(
    ("name", "terms"), [("sum", 15), ("norm", 15), ("sum_columns", 3), ("sum_rows", 5), ("max", 1)]
)
def test_terms_are_what_an_element_adds_up(name: str, terms: int) -> None:
    """Of a 3 x 5 matrix."""
    of = BY_NAME[name]
    assert of.terms(shape(of, "3x5")) == terms


# Operands


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_are_far_from_all_others(name: str) -> None:
    """Rounded to bfloat16 there is one in every row still, and not always in the same place."""
    of = BY_NAME[name]
    (x,) = of.operands(shape(of, "256x320"))
    ordered = np.sort(x, axis=1)
    assert np.min(ordered[:, -1] - ordered[:, -2]) >= 1
    assert np.min(ordered[:, 1] - ordered[:, 0]) >= 1
    assert len({*np.argmax(x, axis=1).tolist()}) > 100


def test_a_sum_of_all_is_off_zero_and_of_both_signs() -> None:
    """Some four times the root of the number of terms; in float16, too, it is a number."""
    of = BY_NAME["sum"]
    for size in of.by_preset.quick:
        (x,) = of.operands(size)
        assert 2 < np.sum(x) / np.sqrt(x.size) < 6
        assert np.min(x) < 0 < np.max(x)
        assert np.sum(x) < np.finfo(np.float16).max / 2


def test_products_neither_overflow_nor_vanish() -> None:
    """In float16, and both signs occur."""
    of = BY_NAME["prod"]
    products = of.reference(*of.operands(shape(of, "1024x1280")))
    sizes = np.abs(products)
    assert 1e-3 < np.min(sizes) < np.max(sizes) < 1e3
    assert np.min(products) < 0 < np.max(products)


def test_the_squares_of_a_norm_add_up_in_float16() -> None:
    """Else a framework that adds them up in it would have infinity."""
    of = BY_NAME["norm"]
    assert of.reference(*of.operands(shape(of, "1024x1280"))) ** 2 < np.finfo(np.float16).max / 2


def test_any_has_both_answers() -> None:
    """About every other row has a true number."""
    of = BY_NAME["any"]
    for size in of.by_preset.quick:
        assert 0.3 < np.mean(of.reference(*of.operands(size))) < 0.7


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_compared_exactly(name: str) -> None:
    """A position that is off by one is another number, whatever type it has."""
    compared = BY_NAME[name].compared
    assert compared is not None
    (positions,) = compared(np.array([2049.0, 7.0], dtype=np.float32))
    assert positions.dtype == np.int64
    assert positions.tolist() == [2049, 7]
