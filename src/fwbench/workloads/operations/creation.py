"""Work around arrays: creation from host data, copies between host and GPU, and the empty call.

Creation from host data means a copy: the verification changes the source afterwards, and the array
must not. A compiler would make zeros and whole numbers once, and keep them. ``noop`` costs what the
harness itself does in a framework: it is reported and never subtracted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Sizes
from fwbench.workloads.operation import DEVICE, HOST, Operation, family
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


def _copy(to: str) -> Operation:
    return Operation(
        name=f"copy_to_{to}",
        inputs=_vector,
        reference=np.copy,
        sizes=Sizes(
            quick=(1_000, 50_000, 1_000_000),
            full=(10, 1_000, 100_000, 1_000_000, 10_000_000, 50_000_000),
        ),
        # Each element crosses the bus once, which is how rates of buses are given.
        cost=lambda n: Cost(flops=0.0, elements=float(n)),
        differentiable=False,
        compilable=False,
        copies_to=to,
        switched_by=("pinned",),
    )


#: Creations begin with NumPy arrays; these measure the way over the bus alone. ``pinned``: whether
#: the memory of the host is page-locked, the only kind that a GPU copies by itself.
COPIES = family("copies", (), _copy(DEVICE), _copy(HOST))


OVERHEAD = family(
    "overhead",
    ("noop",),
    # Returns its argument, through the same path as every other operation.
    Operation(
        name="noop",
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=np.asarray,
        sizes=Sizes(quick=(8, 1_024, 1_000_000)),
        cost=lambda _: Cost(flops=0.0, elements=0.0),
        differentiable=False,
    ),
)
