"""References of functions that NumPy does not have, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
