"""Which numbers an operation computes with while it is timed: its own, or zeros.

A GPU draws less power for zeros and keeps a higher clock: others report 894 TFLOP/s of products on
an H200 instead of 788. Figures that were measured on empty arrays cannot be compared with others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The toggle that says which, and its values.
INPUTS, NORMAL, ZEROS = "inputs", "normal", "zeros"


def has_numbers(operands: Sequence[NDArray[Any]]) -> bool:
    """True if any of the operands is floating-point or complex."""
    return any(np.issubdtype(x.dtype, np.inexact) for x in operands)


def zeros(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Zeros for floating-point and complex operands; whole numbers, such as indices, stay.

    Args:
        operands: of any shapes and dtypes.
    """
    return [np.zeros_like(x) if np.issubdtype(x.dtype, np.inexact) else x for x in operands]


def is_defined(
    reference: Callable[..., Any], operands: Sequence[NDArray[Any]], parameters: Sequence[Any]
) -> bool:
    """True if a function of zeros has finite results.

    Args:
        reference: of an operation.
        operands: whose zeros it is called with.
        parameters: that it gets behind them.
    """
    try:
        with np.errstate(all="ignore"):
            results = reference(*zeros(operands), *parameters)
    except (ArithmeticError, ValueError):  # as NumPy's of linear algebra are
        return False
    every = results if isinstance(results, tuple) else (results,)
    return all(bool(np.all(np.isfinite(x))) for x in every)
