"""ONNX's operators for fwbench's operations, a module a family: names below :class:`Operators`.

ONNX has no decompositions, no transforms and no random numbers worth the name, and what could be
composed of many operators is nobody's way to write it: such operations are not written.
"""

from __future__ import annotations

from fwbench.frameworks.onnxruntime.operations import (
    activations,
    convolution,
    elementwise,
    indexing,
    linalg,
    losses,
    normalisation,
    overhead,
    pooling,
    reductions,
    shape,
)
from fwbench.frameworks.table import joined

_FAMILIES = (
    activations,
    elementwise,
    reductions,
    linalg,
    convolution,
    pooling,
    normalisation,
    losses,
    indexing,
    shape,
    overhead,
)

OPERATIONS = joined(family.OPERATIONS for family in _FAMILIES)

GAPS = tuple(gap for family in _FAMILIES for gap in family.GAPS)
