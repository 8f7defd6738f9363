"""ONNX Runtime: elementwise arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

#: ``TensorProto.DataType``, whose numbers the format of the file fixes.
_FLOAT16, _INT32 = 10, 6


def _cast(to: int) -> Any:
    return lambda op: lambda x: op.Cast(x, to=to)


OPERATIONS: Table = {
    "abs": "Abs",
    "negative": "Neg",
    "sign": "Sign",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "rsqrt": lambda op: lambda x: op.Reciprocal(op.Sqrt(x)),
    "square": lambda op: lambda x: op.Mul(x, x),
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "arctan": "Atan",
    "erf": "Erf",
    "clip": lambda op: lambda x: op.Clip(x, np.float32(-0.5), np.float32(0.5)),
    "floor": "Floor",
    "round": "Round",
    "round_half_even": "Round",
    "isnan": "IsNaN",
    "logical_not": "Not",
    "cast_float16": _cast(_FLOAT16),
    "cast_int32": _cast(_INT32),
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "power": "Pow",
    "greater": "Greater",
    "equal": "Equal",
    "logical_and": "And",
    "where": "Where",
    "multiply_add": lambda op: lambda x, y, z: op.Add(op.Mul(x, y), z),
    "add_row": "Add",
}


GAPS: tuple[Gap, ...] = ()
