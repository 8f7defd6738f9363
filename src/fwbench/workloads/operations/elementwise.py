"""Arithmetic, functions, comparisons and casts, element by element."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import between, elementwise, normal, off_zero, positive
from fwbench.workloads.workload import Cost, Counts

#: Numerator and denominator of Wichura's rational function for the middle of the distribution,
#: the highest power first.
_NUMERATOR = (
    *(2509.0809287301226727, 33430.575583588128105, 67265.770927008700853),
    *(45921.953931549871457, 13731.693765509461125, 1971.5909503065514427),
    *(133.14166789178437745, 3.3871328727963666080),
)
_DENOMINATOR = (
    *(5226.4952788528545610, 28729.085735721942674, 39307.895800092710610),
    *(21213.794301586595867, 5394.1960214247511077, 687.18700749205790830),
    *(42.313330701600911252, 1.0),
)

#: Stirling's series in odd powers of 1 / z, the last of them first.
_STIRLING = (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)

#: So far to the right that the series has 12 decimal places.
_STEPS = 8


def erf(x: NDArray[Any]) -> NDArray[Any]:
    """The error function of each element of a vector."""
    return np.fromiter(map(math.erf, x.tolist()), np.float64, x.size)


def lgamma(x: NDArray[Any]) -> NDArray[Any]:
    """The logarithm of the gamma function for ``x > 0``, to 12 decimal places.

    M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 6.1.41 for the series, some
    steps to the right, and 6.1.16 for the way back; a fifth of the time that ``math.lgamma`` takes.
    """
    z = x + _STEPS
    series = np.polyval(_STIRLING, 1.0 / (z * z)) / z
    there = (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + series
    return there - np.log(math.prod(x + step for step in range(_STEPS)))


def erfinv(y: NDArray[Any]) -> NDArray[Any]:
    """The inverse of the error function for ``abs(y) <= 0.85``, to 16 digits.

    M. J. Wichura, Algorithm AS 241: the percentage points of the normal distribution, Applied
    Statistics 37 (1988) 477; a quantile of that is ``sqrt(2)`` times the inverse.
    """
    q = y / 2
    r = 0.180625 - q * q
    return q * np.polyval(_NUMERATOR, r) / np.polyval(_DENOMINATOR, r) / math.sqrt(2)


#: Dtypes in which a cast to float16, or to bfloat16, is not one to the dtype of the operand.
_BUT_FLOAT16 = ("float32", "float64", "bfloat16")
_BUT_BFLOAT16 = ("float32", "float64", "float16")


def _tiny(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Up to 1/64 of both signs, where exp(x) - 1 and log(1 + x) lose what expm1 and log1p keep."""
    return off_zero(size, rng) / 256


def _eighths(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Odd multiples of 1/8 between -8 and 8: neither whole numbers nor halves, in any dtype."""
    return rng.integers(-32, 32, size) / 4 + 0.125


def _quarters(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Multiples of 1/4 between -8 and 8, none of which is an odd multiple of 1/8."""
    return rng.integers(-32, 32, size) / 4


def _few(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Four numbers, so that many are equal."""
    return rng.integers(4, size=size) / 4


def _booleans(size: int, rng: np.random.Generator) -> NDArray[Any]:
    return rng.integers(2, size=size) == 0


def _holes(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Every other one is not a number."""
    return np.where(_booleans(size, rng), np.nan, rng.standard_normal(size))


def _singles(size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Numbers of float32: a cast of others by way of float32 is rounded twice."""
    return off_zero(size, rng).astype(np.float32).astype(np.float64)


def _to_bfloat16(x: NDArray[Any]) -> NDArray[Any]:
    """Rounded to the 16 upper bits of a float32, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def _narrowed(name: str, reference: Callable[..., Any], dtypes: tuple[str, ...]) -> Operation:
    """A cast, which writes two bytes for each element whatever the dtype of the case."""
    cast = elementwise(name, reference, _singles, flops=0, dtypes=dtypes)
    return replace(cast, cost=lambda n: Cost(0.0, float(n), other_bytes=2.0 * n))


_branching = partial(elementwise, branching=True)

# The gradient of the matrix is a copy, that of the vector a sum over the rows.
_ROW = Counts("nm+m", "nm", "nm+m", sums="nm", flops="nm")

ELEMENTWISE = family(
    "elementwise",
    # The cheapest arithmetic, which memory bounds, and a function that takes arithmetic.
    ("add", "exp"),
    # Functions of one vector
    _branching("abs", np.abs, gradient_flops=2),
    elementwise("negative", np.negative, gradient_flops=1, reads=0),
    _branching("sign", np.sign),
    elementwise("exp", np.exp, gradient_flops=1),
    elementwise("expm1", np.expm1, _tiny, gradient_flops=2),
    elementwise("log", np.log, positive, gradient_flops=1),
    elementwise("log1p", np.log1p, _tiny, gradient_flops=2),
    elementwise("sqrt", np.sqrt, positive, gradient_flops=2),
    elementwise("rsqrt", lambda x: 1.0 / np.sqrt(x), positive, gradient_flops=4),
    elementwise("square", np.square, gradient_flops=2),
    elementwise("reciprocal", np.reciprocal, positive, gradient_flops=3),
    _branching("sin", np.sin, gradient_flops=2),
    _branching("cos", np.cos, gradient_flops=3),
    _branching("arctan", np.arctan, gradient_flops=3),
    _branching("erf", erf, gradient_flops=5),
    _branching("erfinv", erfinv, lambda n, rng: rng.uniform(-0.84, 0.84, n), gradient_flops=4),
    # The gradient is digamma.
    _branching("lgamma", lgamma, lambda n, rng: rng.uniform(2.5, 9.0, n), gradient_flops=2),
    elementwise(
        "clip",
        lambda x: np.clip(x, -0.5, 0.5),
        between(-1.5, -0.5, 0.5, 1.5),
        flops=2,
        gradient_flops=2,
    ),
    elementwise("floor", np.floor, _eighths),
    # Frameworks agree but for halves, which `round_half_even` has and `round` has not.
    elementwise("round", np.round, _eighths),
    # Of multiples of 1/2: every other one is half-way between whole numbers.
    _branching("round_half_even", np.round, lambda n, rng: rng.integers(-16, 16, n) / 2),
    elementwise("isnan", np.isnan, _holes),
    elementwise("logical_not", np.logical_not, _booleans),
    # Casts
    _narrowed("cast_float16", lambda x: x.astype(np.float16), _BUT_FLOAT16),
    _narrowed("cast_bfloat16", _to_bfloat16, _BUT_BFLOAT16),
    # Towards zero.
    elementwise("cast_int32", lambda x: x.astype(np.int32), _eighths, flops=0),
    # Functions of two vectors and more
    elementwise("add", np.add, off_zero, off_zero, gradient_flops=0, reads=0),
    elementwise("subtract", np.subtract, off_zero, off_zero, gradient_flops=1, reads=0),
    elementwise("multiply", np.multiply, off_zero, off_zero, gradient_flops=2),
    elementwise("divide", np.divide, positive, positive, gradient_flops=3),
    _branching("maximum", np.maximum, _eighths, _quarters, gradient_flops=2),
    _branching("minimum", np.minimum, _eighths, _quarters, gradient_flops=2),
    elementwise("power", np.power, positive, positive, gradient_flops=5, reads=3),
    # The sign of the result is the divisor's. Of whole numbers and a quarter between -50 and 50,
    # which a bfloat16 has all of.
    _branching(
        *("mod", np.mod, lambda n, rng: rng.integers(-50, 50, n) + 0.25),
        lambda n, rng: rng.choice([-7.0, -3.0, 3.0, 7.0], n),
    ),
    elementwise("hypot", np.hypot, off_zero, off_zero, flops=4, gradient_flops=3, reads=3),
    _branching("arctan2", np.arctan2, off_zero, off_zero, gradient_flops=7),
    elementwise("greater", np.greater, _few, _few),
    elementwise("equal", np.equal, _few, _few),
    elementwise("logical_and", np.logical_and, _booleans, _booleans),
    _branching(
        "where",
        np.where,
        _booleans,
        off_zero,
        off_zero,
        gradient_flops=2,
        reads=1,
        variables=(1, 2),
    ),
    # One kernel where a framework fuses, and two where it does not.
    elementwise(
        "multiply_add",
        lambda x, y, z: x * y + z,
        *[off_zero] * 3,
        flops=2,
        gradient_flops=2,
        reads=2,
    ),
    # A vector added to every row of a matrix.
    Operation(
        name="add_row",
        inputs=normal(lambda size: (size["n"], size["m"]), lambda size: (size["m"],)),
        reference=np.add,
        sizes=sizes_of("elementwise")["add_row"],
        cost=_ROW.forward,
        backward_cost=_ROW.backward,
    ),
)
