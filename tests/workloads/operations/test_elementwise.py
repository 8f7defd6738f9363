"""Elementwise operations are what their names say, at operands that show when they are not."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.cases import verify
from fwbench.errors import WrongResult
from fwbench.workloads import gelu, gelu_tanh, hard_sigmoid
from fwbench.workloads.operations import elementwise
from fwbench.workloads.operations.vectors import between
from support.operations import computed, named


def test_a_row_is_added_to_every_row() -> None:
    """The vector, which has the length of a row, is repeated."""
    (x, y), result = computed("add_row", "3x2")
    expected = [[a + b for a, b in zip(row, y.tolist(), strict=True)] for row in x.tolist()]
    np.testing.assert_array_equal(result, expected)


def test_a_cast_to_bfloat16_rounds_ties_to_even() -> None:
    """A tie goes to the neighbour whose last bit is 0, up or down; others to the nearest."""
    unit = 2.0**-7
    x = np.array([1 + unit / 2, 1 + 3 * unit / 2, 1 + 0.51 * unit, -1 - 3 * unit / 2, 3.0])
    expected = [1.0, 1 + 2 * unit, 1 + unit, -1 - 2 * unit, 3.0]
    np.testing.assert_array_equal(named("cast_bfloat16").reference(x), expected)


def test_lgamma_is_right_wherever_it_says_so() -> None:
    """Beyond its operands, too: of small and of large positive numbers."""
    x = np.concatenate([np.linspace(0.01, 3, 300), np.linspace(3, 170, 300)])
    expected = [math.lgamma(v) for v in x.tolist()]
    np.testing.assert_allclose(elementwise.lgamma(x), expected, rtol=1e-13, atol=1e-12)


def test_erfinv_is_right_wherever_it_says_so() -> None:
    """The error function leads back, as far out as 0.85 on either side."""
    y = np.linspace(-0.85, 0.85, 301)
    np.testing.assert_allclose([math.erf(v) for v in elementwise.erfinv(y)], y, rtol=0, atol=4e-16)


@pytest.mark.parametrize(
    ("name", "naive"),
    [
        ("expm1", lambda x: np.exp(x) - np.float32(1)),
        ("log1p", lambda x: np.log(np.float32(1) + x)),
        ("floor", np.trunc),
        ("cast_int32", np.floor),
        ("round_half_even", lambda x: np.floor(x + np.float32(0.5))),
        ("mod", np.fmod),
        ("arctan2", lambda x, y: np.arctan(x / y)),
        ("isnan", lambda x: np.zeros(x.shape)),
    ],
)
def test_what_is_nearly_the_operation_is_found_out(name: str, naive: Callable[..., Any]) -> None:
    """Operands are where it differs from what is easily taken for it, in float32."""
    operation = named(name)
    operands = [x.astype(np.float32) for x in operation.operands(operation.smallest)]
    reference = operation.reference(*(x.astype(np.float64) for x in operands))
    with pytest.raises(WrongResult):
        verify.compare(naive(*operands), reference, verify.tolerance("float32", 1))


def _rounded(x: Any, dtype: str) -> Any:
    return named("cast_bfloat16").reference(x) if dtype == "bfloat16" else x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_rounding_puts_no_operand_where_frameworks_may_differ(dtype: str) -> None:
    """No ties, no halves and no kinks, in any dtype."""
    for name in ("maximum", "minimum"):
        x, y = (_rounded(operand, dtype) for operand in named(name).operands(10_000))
        assert np.min(np.abs(x - y)) == 0.125
    for name in ("floor", "round", "cast_int32"):
        x = _rounded(named(name).operands(10_000)[0], dtype)
        assert np.min(np.abs(2 * x - np.round(2 * x))) == 0.25
    x = _rounded(named("clip").operands(10_000)[0], dtype)
    assert np.min(np.abs(np.abs(x) - 0.5)) > 0.09


@pytest.mark.parametrize("name", ["cast_float16", "cast_bfloat16"])
def test_a_cast_is_rounded_once(name: str) -> None:
    """The operands of a cast are numbers of float32, by way of which some frameworks round."""
    (x,) = named(name).operands(1_000)
    np.testing.assert_array_equal(x.astype(np.float32), x)
    assert np.mean(named(name).reference(x) != x) > 0.9


def test_pieces_have_equal_shares() -> None:
    """However wide they are, so that every branch is measured."""
    x = between(0.0, 1.0, 10.0)(10_000, np.random.default_rng(0))
    assert 0.45 < np.mean(x < 1) < 0.55
    assert np.min(np.abs(x - 1)) >= 0.1


def test_the_tanh_form_of_gelu_is_another_function() -> None:
    """It is off by up to 5e-4, far more than float32 allows: neither passes for the other."""
    x = np.linspace(-4, 4, 1001)
    assert 4e-4 < np.max(np.abs(gelu_tanh.reference(x) - gelu.reference(x))) < 5e-4


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_every_piece_of_hard_sigmoid_has_operands_and_no_kink_has(dtype: type) -> None:
    """A third lies below -3, a third above 3, and rounding puts none on either."""
    x = hard_sigmoid.operands(10_000)[0].astype(dtype)
    assert np.min(np.abs(np.abs(x) - 3)) > 0.09
    for piece in (x < -3, np.abs(x) < 3, x > 3):
        assert 0.3 < np.mean(piece) < 0.37
