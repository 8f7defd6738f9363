"""NumPy's functions for fwbench's operations, a module a family: paths below ``np``."""

from __future__ import annotations

from fwbench.frameworks.numpy.operations import activations, linalg, overhead
from fwbench.frameworks.table import joined

_FAMILIES = (activations, linalg, overhead)

OPERATIONS = joined(family.OPERATIONS for family in _FAMILIES)

GAPS = tuple(gap for family in _FAMILIES for gap in family.GAPS)
