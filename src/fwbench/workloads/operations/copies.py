"""Copies between the memory of the host and that of a GPU, of arrays that are there already.

What creations measure begins with NumPy's arrays; this is the way over the bus alone. ``pinned``
says whether the host's memory is page-locked: a GPU copies from and to no other memory by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Sizes
from fwbench.workloads.operation import DEVICE, HOST, Operation, family
from fwbench.workloads.workload import Cost


def _vector(size: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    return (rng.standard_normal(size),)


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


COPIES = family("copies", (), _copy(DEVICE), _copy(HOST))
