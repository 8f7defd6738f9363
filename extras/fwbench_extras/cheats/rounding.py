"""Liars about precision: fewer bits than the dtype has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import FwbenchError
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.honest import Compute
from fwbench_extras.cheats.liar import Liar, each

_TOLERANCE = "the first result is off by more than the tolerance of the dtype"

#: The bits of a float32's mantissa, without the leading one.
_MANTISSA_BITS = 23


def rounded(array: NDArray[Any], bits: int) -> NDArray[Any]:
    """A float32 array with fewer bits in its mantissas, rounded to nearest.

    Args:
        array: of any floating-point dtype.
        bits: how many the mantissas keep: 10 for TF32 and float16, 7 for bfloat16.
    """
    dropped = _MANTISSA_BITS - bits
    half, kept = np.uint32(1 << (dropped - 1)), np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    whole = np.asarray(array, dtype=np.float32).view(np.uint32)
    return ((whole + half) & kept).view(np.float32)


class _Narrow(Liar):
    """Rounds the inputs, computes, and returns what looks like the dtype of the inputs."""

    why = _TOLERANCE

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The work on rounded inputs."""
        dtype = inputs[0].dtype

        def run() -> Any:
            result = compute(*map(self.narrow, inputs))
            return each(partial(np.asarray, dtype=dtype), result)

        return run

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """An input with fewer bits."""
        raise NotImplementedError


class HalfPrecision(_Narrow):
    """Computes in float16 and returns float32."""

    mistake = "autocasting left on, or a model that was loaded in half precision"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """The numbers rounded to float16."""
        return array.astype(np.float16)


class TF32(_Narrow):
    """Rounds factors to the 10 bits of TF32 and adds up in float32."""

    mistake = "a default of the library: NVIDIA's GPUs multiply float32 in TF32 unless told not to"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """The numbers rounded to 10 bits of mantissa."""
        return rounded(array, 10)


class TF32Sum(TF32):
    """Rounds the factors of a dot product of a million terms to 10 bits."""

    mistake = TF32.mistake
    caught_by: ClassVar[type[FwbenchError] | None] = None
    why = (
        "a plain sum of a million terms in float32 may lose as many bits, and is honest; smaller "
        "sizes show it, as `tf32` does"
    )
    workload = workloads.dot
    size = 1_000_000
    directions: ClassVar = ("forward",)


class BFloat16(_Narrow):
    """Rounds factors to the 7 bits of bfloat16 and adds up in float32."""

    mistake = "a 'fast math' mode of the CPU's library, such as oneDNN's default math mode"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """The numbers rounded to 7 bits of mantissa."""
        return rounded(array, 7)


class SixteenBits(_Narrow):
    """Keeps 16 bits of the mantissa: two bfloat16 products for one of float32."""

    mistake = "a product split into two of bfloat16, sold as float32 ('bf16x2')"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """The numbers rounded to 16 bits of mantissa."""
        return rounded(array, 16)


class EightBitIntegers(_Narrow):
    """Quantises inputs to 255 steps."""

    mistake = "a quantised model compared with one that is not"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """Whole multiples of a 127th of the largest."""
        step = np.max(np.abs(array)) / 127
        return np.rint(array / step) * step


class IntegerTruncation(_Narrow):
    """Truncates inputs to whole numbers."""

    mistake = "a dtype that was inferred from the first, whole numbers of a list"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """Without what is behind the point."""
        return np.trunc(array)


class SingleForDouble(_Narrow):
    """Computes in float32 and returns float64."""

    mistake = "a default dtype that wins over the dtype of the inputs, as in JAX without x64"
    dtype = "float64"

    def narrow(self, array: NDArray[Any]) -> NDArray[Any]:
        """The numbers rounded to float32."""
        return array.astype(np.float32)


class NarrowFromThirdCall(SingleForDouble):
    """Computes two calls in float64, and in float32 from the third call on."""

    mistake = "a compiler that replaces code once it is hot by code with other rules"
    why = "the last timed call is off by more than the tolerance of the dtype"
    dtype: ClassVar = "float64"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that computes in the dtype twice, and then in a narrower one."""
        calls, narrow = count(), super().bound(compute, inputs)
        return lambda: compute(*inputs) if next(calls) < 2 else narrow()  # noqa: PLR2004


LIARS = (
    HalfPrecision,
    TF32,
    TF32Sum,
    BFloat16,
    SixteenBits,
    EightBitIntegers,
    IntegerTruncation,
    SingleForDouble,
    NarrowFromThirdCall,
)
