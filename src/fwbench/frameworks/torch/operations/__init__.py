"""PyTorch's functions for fwbench's operations, a module a family: paths below ``torch``."""

from __future__ import annotations

from fwbench.frameworks.table import joined
from fwbench.frameworks.torch.operations import (
    activations,
    attention,
    convolution,
    creation,
    elementwise,
    fft,
    image,
    indexing,
    linalg,
    losses,
    normalisation,
    optimisers,
    overhead,
    pooling,
    random,
    recurrent,
    reductions,
    shape,
    sorting,
)

_FAMILIES = (
    creation,
    activations,
    elementwise,
    reductions,
    linalg,
    convolution,
    pooling,
    normalisation,
    losses,
    attention,
    recurrent,
    indexing,
    sorting,
    shape,
    random,
    optimisers,
    fft,
    image,
    overhead,
)

OPERATIONS = joined(family.OPERATIONS for family in _FAMILIES)

GAPS = tuple(gap for family in _FAMILIES for gap in family.GAPS)
