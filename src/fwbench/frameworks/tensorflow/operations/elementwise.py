"""TensorFlow: elementwise arithmetic."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _multiply_add(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


OPERATIONS: Table = {
    "abs": "abs",
    "negative": "negative",
    "sign": "sign",
    "exp": "exp",
    "expm1": "math.expm1",
    "log": "math.log",
    "log1p": "math.log1p",
    "sqrt": "sqrt",
    "rsqrt": "math.rsqrt",
    "square": "square",
    "reciprocal": "math.reciprocal",
    "sin": "sin",
    "cos": "cos",
    "arctan": "atan",
    "erf": "math.erf",
    "erfinv": "math.erfinv",
    "lgamma": "math.lgamma",
    "clip": Call("clip_by_value", clip_value_min=-0.5, clip_value_max=0.5),
    "floor": "floor",
    "round": "round",
    "round_half_even": "round",
    "isnan": "math.is_nan",
    "logical_not": "logical_not",
    "cast_float16": Call("cast", dtype="float16"),
    "cast_bfloat16": Call("cast", dtype="bfloat16"),
    "cast_int32": Call("cast", dtype="int32"),
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "pow",
    "mod": "math.floormod",
    # Composed of others: there is no kernel of its own.
    "hypot": "experimental.numpy.hypot",
    "arctan2": "atan2",
    "greater": "greater",
    "equal": "equal",
    "logical_and": "logical_and",
    "where": "where",
    "multiply_add": lambda tf: _multiply_add,
    "add_row": "add",
}

GAPS: tuple[Gap, ...] = (
    *(
        Gap(
            f"tensorflow has a {dtype} kernel of {operation} on the CPU in xla only",
            operation,
            execution=execution,
            dtype=dtype,
            device="cpu",
        )
        for operation, dtype in (
            ("erfinv", "float16"),
            ("erfinv", "bfloat16"),
            ("lgamma", "bfloat16"),
        )
        for execution in ("eager", "graph")
    ),
    Gap("tensorflow.experimental.numpy has no bfloat16", "hypot", dtype="bfloat16"),
)
