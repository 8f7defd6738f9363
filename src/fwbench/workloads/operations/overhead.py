"""Costs of the harness itself in a framework: reported, never subtracted."""

from __future__ import annotations

import numpy as np

from fwbench.presets import Sizes
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

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
