"""NumPy: elementwise arithmetic."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap
from fwbench.workloads import Implementation


def _multiply_add(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    return x * y + z


def _cast(dtype: str) -> Implementation:
    return lambda np: lambda x: x.astype(dtype)


OPERATIONS: Table = {
    "abs": "abs",
    "negative": "negative",
    "sign": "sign",
    "exp": "exp",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "rsqrt": lambda np: lambda x: 1 / np.sqrt(x),
    "square": "square",
    "reciprocal": "reciprocal",
    "sin": "sin",
    "cos": "cos",
    "arctan": "arctan",
    "clip": Call("clip", a_min=-0.5, a_max=0.5),
    "floor": "floor",
    "round": "round",
    "round_half_even": "round",
    "isnan": "isnan",
    "logical_not": "logical_not",
    "cast_float16": _cast("float16"),
    "cast_int32": _cast("int32"),
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "power",
    "mod": "mod",
    "hypot": "hypot",
    "arctan2": "arctan2",
    "greater": "greater",
    "equal": "equal",
    "logical_and": "logical_and",
    "where": "where",
    "multiply_add": lambda np: _multiply_add,
    "add_row": "add",
}

GAPS: tuple[Gap, ...] = (
    Gap("numpy has no error function", "erf"),
    Gap("numpy has no inverse error function", "erfinv"),
    Gap("numpy has no gamma function", "lgamma"),
    Gap("numpy has no bfloat16", "cast_bfloat16"),
)
