"""New arrays on the device: from a NumPy array, from a Python list; zeros, and whole numbers.

Creation from host data means a copy: the verification changes the source afterwards, and the array
must not. A compiler would make zeros and whole numbers once, and keep them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Sizes
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

#: What CPython spends on one float of a list: 8 bytes of pointer and 24 of object.
_LIST_FLOAT_BYTES = 32

_INT32_BYTES = 4

_NEW = Sizes(quick=(1_000, 50_000, 1_000_000), full=(10, 1_000, 100_000, 1_000_000, 10_000_000))


def _vector(size: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    return (rng.standard_normal(size),)


def _unchanged(x: NDArray[Any]) -> NDArray[Any]:
    return x


CREATIONS = family(
    "creation",
    ("from_numpy",),
    # From a NumPy vector of ``size`` elements in the dtype of the case (float32 for bfloat16, which
    # NumPy does not have): a copy, without a conversion.
    Operation(
        name="from_numpy",
        inputs=_vector,
        reference=_unchanged,
        sizes=Sizes(
            quick=(1_000, 50_000, 1_000_000),
            paper=tuple(range(20_000, 95_001, 5_000)),
            full=(10, 1_000, 100_000, 1_000_000, 10_000_000, 50_000_000),
        ),
        cost=lambda n: Cost(flops=0.0, elements=2.0 * n),
        differentiable=False,
        compilable=False,
        source=np.copy,
    ),
    # From a Python list of ``size`` floats.
    Operation(
        name="from_list",
        inputs=_vector,
        reference=_unchanged,
        sizes=Sizes(
            quick=(100, 5_000, 50_000),
            paper=tuple(range(5_000, 55_001, 5_000)),
            full=(10, 1_000, 100_000, 1_000_000),
        ),
        cost=lambda n: Cost(flops=0.0, elements=float(n), other_bytes=float(_LIST_FLOAT_BYTES * n)),
        differentiable=False,
        compilable=False,
        source=np.ndarray.tolist,
    ),
    # Zeros, as many as a vector of ``size`` elements has, in its dtype and where it is. They are
    # written: memory that was asked for as zeros costs nothing until it is used.
    Operation(
        name="zeros_like",
        inputs=_vector,
        reference=np.zeros_like,
        sizes=_NEW,
        cost=lambda n: Cost(flops=0.0, elements=float(n)),
        differentiable=False,
        compilable=False,
    ),
    # Whole numbers from 0 to ``size``, in 32 bits whatever the dtype of the case is. The operand
    # tells no more than the device.
    Operation(
        name="arange",
        inputs=lambda n, rng: (rng.standard_normal(1),),
        reference=lambda x, n: np.arange(n),
        sizes=_NEW,
        cost=lambda n: Cost(flops=0.0, elements=0.0, other_bytes=_INT32_BYTES * float(n)),
        differentiable=False,
        compilable=False,
        parameters=lambda n: (n,),
    ),
)
