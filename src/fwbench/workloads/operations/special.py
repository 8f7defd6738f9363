"""References of functions that NumPy does not have, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def _each(
    function: Callable[[float], float],
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """A function of one number, for each element of a vector."""
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


erf = _each(math.erf)

lgamma = _each(math.lgamma)


def erfinv(y: NDArray[Any]) -> NDArray[Any]:
    """The inverse of the error function for ``abs(y) <= 0.85``, to 16 digits.

    M. J. Wichura, Algorithm AS 241: the percentage points of the normal distribution, Applied
    Statistics 37 (1988) 477; a quantile of that is ``sqrt(2)`` times the inverse.
    """
    q = y / 2
    r = 0.180625 - q * q
    return q * np.polyval(_NUMERATOR, r) / np.polyval(_DENOMINATOR, r) / math.sqrt(2)
