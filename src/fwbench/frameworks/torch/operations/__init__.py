"""PyTorch's functions for fwbench's operations, a module a family: paths below ``torch``."""

from __future__ import annotations

from fwbench.frameworks.table import joined
from fwbench.frameworks.torch.operations import activations, linalg, overhead

_FAMILIES = (activations, linalg, overhead)

OPERATIONS = joined(family.OPERATIONS for family in _FAMILIES)

GAPS = tuple(gap for family in _FAMILIES for gap in family.GAPS)
