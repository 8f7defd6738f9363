"""Elementwise operations are what their names say, at operands that show when they are not."""

from __future__ import annotations

import cmath
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench import workloads
from fwbench.cases import verify
from fwbench.errors import WrongResult
from fwbench.workloads import ELEMENTWISE, Operation
from fwbench.workloads.operations import special
from fwbench.workloads.operations.vectors import between
from fwbench.workloads.workload import Cost


def _bfloat16(v: float) -> float:
    mantissa, exponent = math.frexp(v)
    return math.ldexp(round(mantissa * 256), exponent - 8)


#: By name: of Python's own numbers.
FORMULAS: dict[str, Callable[..., Any]] = {
    "abs": lambda v: max(v, -v),
    "negative": lambda v: 0 - v,
    "sign": lambda v: 1 if v > 0 else -1,
    "exp": lambda v: math.e**v,
    "expm1": lambda v: 2 * math.exp(v / 2) * math.sinh(v / 2),
    "log": lambda v: math.log2(v) * math.log(2),
    "log1p": lambda v: 2 * math.atanh(v / (2 + v)),
    "sqrt": lambda v: v**0.5,
    "rsqrt": lambda v: v**-0.5,
    "square": lambda v: v**2,
    "reciprocal": lambda v: v**-1,
    "sin": lambda v: 2 * math.sin(v / 2) * math.cos(v / 2),
    "cos": lambda v: 1 - 2 * math.sin(v / 2) ** 2,
    "arctan": lambda v: math.asin(v / math.sqrt(1 + v * v)),
    "erf": lambda v: 1 - math.erfc(v),
    "erfinv": lambda v: _inverse(math.erf, v),
    "lgamma": lambda v: math.log(math.gamma(v)),
    "clip": lambda v: sorted((-0.5, v, 0.5))[1],
    "floor": lambda v: v // 1,
    "round": lambda v: math.floor(v + 0.5),
    "round_half_even": round,
    "isnan": math.isnan,
    "logical_not": lambda v: not v,
    "cast_float16": lambda v: struct.unpack("e", struct.pack("e", v))[0],
    "cast_bfloat16": _bfloat16,
    "cast_int32": int,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "maximum": max,
    "minimum": min,
    "power": lambda a, b: math.exp(b * math.log(a)),
    "mod": lambda a, b: a - b * math.floor(a / b),
    "hypot": lambda a, b: abs(complex(a, b)),
    "arctan2": lambda a, b: cmath.phase(complex(b, a)),
    "greater": lambda a, b: a > b,
    "equal": lambda a, b: a == b,
    "logical_and": lambda a, b: a and b,
    "where": lambda c, a, b: a if c else b,
    "multiply_add": lambda a, b, c: a * b + c,
}


def _inverse(function: Callable[[float], float], value: float) -> float:
    """Where a function that grows between -2 and 2 has a value, by bisection."""
    low, high = -2.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return low


def _named(name: str) -> Operation:
    operation: Operation = getattr(workloads, name)
    return operation


def test_every_operation_on_vectors_has_a_formula() -> None:
    """None of the family goes without the test below; add_row, of a matrix, has its own."""
    assert {*FORMULAS} == {of.name for of in ELEMENTWISE} - {"add_row"}


@pytest.mark.parametrize("name", FORMULAS)
def test_references_compute_what_their_name_says(name: str) -> None:
    """Every reference agrees with a formula on Python's own numbers."""
    operands = _named(name).operands(50)
    found = _named(name).reference(*operands)
    columns = zip(*(x.tolist() for x in operands), strict=True)
    expected = [FORMULAS[name](*column) for column in columns]
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12, atol=1e-13)
    assert len({*expected}) > 1, "these operands would not tell it from a constant"


def test_a_row_is_added_to_every_row() -> None:
    """The vector, which has the length of a row, is repeated."""
    of = _named("add_row")
    assert of.form is not None
    x, y = of.operands(of.form.read("3x2"))
    expected = [[a + b for a, b in zip(row, y.tolist(), strict=True)] for row in x.tolist()]
    np.testing.assert_array_equal(of.reference(x, y), expected)


def test_a_cast_to_bfloat16_rounds_ties_to_even() -> None:
    """Of a tie the neighbour whose last bit is 0, up or down; of others the nearest."""
    unit = 2.0**-7
    x = np.array([1 + unit / 2, 1 + 3 * unit / 2, 1 + 0.51 * unit, -1 - 3 * unit / 2, 3.0])
    expected = [1.0, 1 + 2 * unit, 1 + unit, -1 - 2 * unit, 3.0]
    np.testing.assert_array_equal(_named("cast_bfloat16").reference(x), expected)


def test_lgamma_is_right_wherever_it_says_so() -> None:
    """Beyond its operands, too: of small and of large positive numbers."""
    x = np.concatenate([np.linspace(0.01, 3, 300), np.linspace(3, 170, 300)])
    expected = [math.lgamma(v) for v in x.tolist()]
    np.testing.assert_allclose(special.lgamma(x), expected, rtol=1e-13, atol=1e-12)


def test_erfinv_is_right_wherever_it_says_so() -> None:
    """The error function leads back, as far out as 0.85 on either side."""
    y = np.linspace(-0.85, 0.85, 301)
    np.testing.assert_allclose([math.erf(v) for v in special.erfinv(y)], y, rtol=0, atol=4e-16)


# Operands


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
    of = _named(name)
    operands = [x.astype(np.float32) for x in of.operands(of.smallest)]
    reference = of.reference(*(x.astype(np.float64) for x in operands))
    with pytest.raises(WrongResult):
        verify.result(naive(*operands), reference, verify.tolerance("float32", 1))


def _rounded(x: Any, dtype: str) -> Any:
    return _named("cast_bfloat16").reference(x) if dtype == "bfloat16" else x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_rounding_puts_no_operand_where_frameworks_may_differ(dtype: str) -> None:
    """No ties, no halves and no kinks, in any dtype."""
    for name in ("maximum", "minimum"):
        x, y = (_rounded(operand, dtype) for operand in _named(name).operands(10_000))
        assert np.min(np.abs(x - y)) == 0.125
    for name in ("floor", "round", "cast_int32"):
        x = _rounded(_named(name).operands(10_000)[0], dtype)
        assert np.min(np.abs(2 * x - np.round(2 * x))) == 0.25
    x = _rounded(_named("clip").operands(10_000)[0], dtype)
    assert np.min(np.abs(np.abs(x) - 0.5)) > 0.09


@pytest.mark.parametrize("name", ["cast_float16", "cast_bfloat16"])
def test_a_cast_is_rounded_once(name: str) -> None:
    """The operands of a cast are numbers of float32, by way of which some frameworks round."""
    (x,) = _named(name).operands(1_000)
    np.testing.assert_array_equal(x.astype(np.float32), x)
    assert np.mean(_named(name).reference(x) != x) > 0.9


def test_pieces_have_equal_shares() -> None:
    """However wide they are, so that every branch is measured."""
    x = between(0.0, 1.0, 10.0)(10_000, np.random.default_rng(0))
    assert 0.45 < np.mean(x < 1) < 0.55
    assert np.min(np.abs(x - 1)) >= 0.1


# Costs, at size 10

COSTS = {
    "sign": (Cost(10, 20), None),
    "cast_float16": (Cost(0, 20), None),
    "exp": (Cost(10, 20), Cost(20, 50)),
    # The gradient of what is linear reads no operand.
    "negative": (Cost(10, 20), Cost(20, 40)),
    "add": (Cost(10, 30), Cost(10, 60)),
    "multiply": (Cost(10, 30), Cost(30, 80)),
    "divide": (Cost(10, 30), Cost(40, 80)),
    # That of x ** y reads the result, too.
    "power": (Cost(10, 30), Cost(60, 90)),
    # The condition has no gradient, and is all that theirs reads of the operands.
    "where": (Cost(10, 40), Cost(30, 80)),
    "multiply_add": (Cost(20, 40), Cost(40, 100)),
    "mod": (Cost(10, 30), None),
}


@pytest.mark.parametrize("name", COSTS)
def test_costs(name: str) -> None:
    """Every operand and the result once; the gradient what it reads, and one a variable."""
    of = _named(name)
    assert (of.cost_of("forward", 10), of.cost_of("backward", 10)) == COSTS[name]


def test_costs_of_a_row() -> None:
    """The vector is read once, and its gradient is a sum over the rows."""
    of = _named("add_row")
    assert of.form is not None
    size = of.form.read("10x3")
    assert of.cost_of("forward", size) == Cost(30, 63)
    assert of.cost_of("backward", size) == Cost(60, 126)
