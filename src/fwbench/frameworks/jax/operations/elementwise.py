"""JAX: elementwise arithmetic."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap
from fwbench.workloads import Implementation


def _multiply_add(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def _cast(dtype: str) -> Implementation:
    return lambda jax: lambda x: x.astype(dtype)


OPERATIONS: Table = {
    "abs": "numpy.abs",
    "negative": "numpy.negative",
    "sign": "numpy.sign",
    "exp": "numpy.exp",
    "expm1": "numpy.expm1",
    "log": "numpy.log",
    "log1p": "numpy.log1p",
    "sqrt": "numpy.sqrt",
    "rsqrt": "lax.rsqrt",
    "square": "numpy.square",
    "reciprocal": "numpy.reciprocal",
    "sin": "numpy.sin",
    "cos": "numpy.cos",
    "arctan": "numpy.arctan",
    "erf": "lax.erf",
    "erfinv": "lax.erf_inv",
    "lgamma": "lax.lgamma",
    "clip": Call("numpy.clip", min=-0.5, max=0.5),
    "floor": "numpy.floor",
    "round": "numpy.round",
    "round_half_even": "numpy.round",
    "isnan": "numpy.isnan",
    "logical_not": "numpy.logical_not",
    "cast_float16": _cast("float16"),
    "cast_bfloat16": _cast("bfloat16"),
    "cast_int32": _cast("int32"),
    "add": "numpy.add",
    "subtract": "numpy.subtract",
    "multiply": "numpy.multiply",
    "divide": "numpy.divide",
    "maximum": "numpy.maximum",
    "minimum": "numpy.minimum",
    "power": "numpy.power",
    "mod": "numpy.mod",
    "hypot": "numpy.hypot",
    "arctan2": "numpy.arctan2",
    "greater": "numpy.greater",
    "equal": "numpy.equal",
    "logical_and": "numpy.logical_and",
    "where": "numpy.where",
    "multiply_add": lambda jax: _multiply_add,
    "add_row": "numpy.add",
}

GAPS: tuple[Gap, ...] = ()
