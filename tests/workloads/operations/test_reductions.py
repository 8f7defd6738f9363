"""Reductions against the textbook, without NumPy; and what their operands are made to be."""

import math

import numpy as np
import pytest

from support.operations import named, sized


def test_logsumexp_does_not_overflow() -> None:
    result = named("logsumexp").reference(np.array([[1000.0, 1000.0], [-1000.0, -1000.0]]))
    np.testing.assert_allclose(result, np.array([1000.0, -1000.0]) + math.log(2), rtol=1e-15)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_are_far_from_all_others(name: str) -> None:
    """Rounded to bfloat16 there is one in every row still, and not always in the same place."""
    operation = named(name)
    (x,) = operation.operands(sized(operation, "256x320"))
    ordered = np.sort(x, axis=1)
    assert np.min(ordered[:, -1] - ordered[:, -2]) >= 1
    assert np.min(ordered[:, 1] - ordered[:, 0]) >= 1
    assert len({*np.argmax(x, axis=1).tolist()}) > 100


def test_a_sum_of_all_is_off_zero_and_of_both_signs() -> None:
    """Some four times the root of the number of terms; in float16, too, it is a number."""
    operation = named("sum")
    for size in operation.by_preset.quick:
        (x,) = operation.operands(size)
        assert 2 < np.sum(x) / np.sqrt(x.size) < 6
        assert np.min(x) < 0 < np.max(x)
        assert np.sum(x) < np.finfo(np.float16).max / 2


def test_products_neither_overflow_nor_vanish() -> None:
    operation = named("prod")
    products = operation.reference(*operation.operands(sized(operation, "1024x1280")))
    sizes = np.abs(products)
    assert 1e-3 < np.min(sizes) < np.max(sizes) < 1e3
    assert np.min(products) < 0 < np.max(products)


def test_the_squares_of_a_norm_add_up_in_float16() -> None:
    """Else a framework that adds them up in it would have infinity."""
    operation = named("norm")
    assert (
        operation.reference(*operation.operands(sized(operation, "1024x1280"))) ** 2
        < np.finfo(np.float16).max / 2
    )


def test_any_has_both_answers() -> None:
    """About every other row has a true number."""
    operation = named("any")
    for size in operation.by_preset.quick:
        assert 0.3 < np.mean(operation.reference(*operation.operands(size))) < 0.7


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_compared_exactly(name: str) -> None:
    """A position that is off by one is another number, in any type."""
    compared = named(name).compared
    assert compared is not None
    (positions,) = compared(np.array([2049.0, 7.0], dtype=np.float32))
    assert positions.dtype == np.int64
    assert positions.tolist() == [2049, 7]
