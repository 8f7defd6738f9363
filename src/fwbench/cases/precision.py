"""Bits of mantissa that work was computed in, judged by the error that verification measured.

A number rounded to ``b`` bits of mantissa is off by up to half a unit in the last place, ``2 ** -(b
+ 1)`` of its size, and work in such numbers by about as much. Errors of a sum of ``n`` terms grow
with ``sqrt(n)`` where it is plain (Higham and Mary, A new approach to probabilistic rounding error
analysis, SIAM Journal on Scientific Computing 41, 2019), and far less where it is made in blocks.
The formats that hardware computes in are many bits apart, so the error tells which it was.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.records.facts import CaseFacts
from fwbench.terms.names import FLOAT8, real_dtype
from fwbench.workloads.grid import Cell

#: Bits of mantissa of each dtype.
DTYPES = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, FLOAT8: 3}

#: The largest error of work by bits of mantissa. Seen of fwbench's frameworks, in units of these:
#: 0.01 (MXNet adds 1e-10 to what it divides by), 0.09 and 0.5; of work in the next narrower format
#: 8 and more, 8 to 20, and 1.2 to 5. TF32 counts as float16, which has as many bits.
_LARGEST = {52: 2.0**-29, 23: 2.0**-16, 10: 6e-4}
_NARROWEST = 7

#: The dtype whose gradients tell something: the difference that they are compared with is too
#: coarse for a wider one, and one number alone too little for the next format of a narrower one.
_GRADIENT = "float32"

#: Sums in these dtypes are made in blocks, and sixteen times better than plain ones.
_IN_BLOCKS = ("float64", "float32")
_BLOCKS = 16.0

#: What work in TF32 may be off by in addition to work in float32. Either factor of a product loses
#: up to 2 ** -10 of itself where bits are cut off, which is the hardware's way, and adds up over
#: terms of one sign; as much again for terms of random sign. Seen of rounded factors, in products
#: of 64 to 1,024: 1.1e-3 to 1.4e-3.
_TF32 = 2.0**-8

#: This many numbers are not representable in float32 by chance.
_MANY = 4


def tolerance(cell: Cell, terms: int, factor: float) -> float:
    """The largest relative error that is still the same work, in float32 or in TF32.

    Args:
        terms: how many terms an element of the result adds up.
    """
    allowed = verify.tolerance(real_dtype(cell.dtype), terms, factor)
    return allowed + factor * _TF32 if cell.toggle("tf32") == "on" else allowed


def bits(dtype: str, rms: float, gradient_error: float, terms: int) -> int:
    """The format in which work was computed, as bits of mantissa: at most those of its dtype.

    Args:
        rms: root mean square of the relative errors of its result; 0 is what any format can have.
        gradient_error: largest relative error of a gradient; 0 where there is none.
        terms: how many terms an element of the result adds up.
    """
    error = max(rms, gradient_error if dtype == _GRADIENT else 0.0)
    growth = max(1.0, float(np.sqrt(terms)) / (_BLOCKS if dtype in _IN_BLOCKS else 1.0))
    for wide, largest in _LARGEST.items():
        if wide <= DTYPES[dtype] and error <= largest * growth:
            return wide
    return min(_NARROWEST, DTYPES[dtype])


def is_float32(values: NDArray[Any]) -> bool:
    """True if numbers have no more digits than float32 has; few of them may by chance."""
    known = values[np.isfinite(values) & (values != 0)]
    with np.errstate(over="ignore"):
        narrow = known.astype(np.complex64 if np.iscomplexobj(known) else np.float32)
    return known.size >= _MANY and np.array_equal(narrow, known)


def of_dtype(dtype: str) -> int | None:
    """The bits of mantissa of a dtype; None for one that is not known."""
    return DTYPES.get(real_dtype(dtype))


def is_reduced(facts: CaseFacts) -> bool:
    """True if a record's case was computed in a narrower format than that of its dtype."""
    computed = facts.precision_bits
    return computed is not None and computed < (of_dtype(facts.dtype) or 0)
