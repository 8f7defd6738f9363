"""PyTorch: elementwise arithmetic."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "abs": "abs",
    "negative": "neg",
    "sign": "sign",
    "exp": "exp",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "square": "square",
    "reciprocal": "reciprocal",
    "sin": "sin",
    "cos": "cos",
    "arctan": "atan",
    "erf": "erf",
    "erfinv": "erfinv",
    "lgamma": "lgamma",
    "clip": Call("clamp", min=-0.5, max=0.5),
    "floor": "floor",
    "round": "round",
    "round_half_even": "round",
    "isnan": "isnan",
    "logical_not": "logical_not",
    "cast_float16": "Tensor.half",
    "cast_bfloat16": "Tensor.bfloat16",
    "cast_int32": "Tensor.int",
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "pow",
    "mod": "remainder",
    "hypot": "hypot",
    "arctan2": "atan2",
    "greater": "gt",
    "equal": "eq",
    "logical_and": "logical_and",
    "where": "where",
    "multiply_add": lambda torch: lambda x, y, z: torch.addcmul(z, x, y),
    "add_row": "add",
}

GAPS: tuple[Gap, ...] = ()
