"""MXNet: elementwise arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap


def _as_numbers(count: int) -> Layout:
    """The first operands are 0 and 1 in the dtype of the case: operators refuse booleans."""
    return Layout(
        place=lambda arrays: [*(x.astype(np.float32) for x in arrays[:count]), *arrays[count:]],
        restore=lambda arrays: [*(x != 0 for x in arrays[:count]), *arrays[count:]],
    )


#: An operand with as many axes as the other.
_AS_ROW = Layout(
    place=lambda arrays: [arrays[0], arrays[1][np.newaxis]],
    restore=lambda arrays: [arrays[0], arrays[1][0]],
)


def _arctan2(F: Any) -> Any:
    """It is in MXNet's NumPy alone, which has arrays of its own that share the memory."""
    arctan2 = F.np.arctan2
    return lambda y, x: arctan2(y.as_np_ndarray(), x.as_np_ndarray()).as_nd_ndarray()


def _around(F: Any) -> Any:
    """Of MXNet's NumPy: F.round and F.rint round halves otherwise."""
    around = F.np.around
    return lambda x: around(x.as_np_ndarray()).as_nd_ndarray()


OPERATIONS: Table = {
    "abs": "abs",
    "negative": "negative",
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
    "arctan": "arctan",
    "erf": "erf",
    "erfinv": "erfinv",
    "lgamma": "gammaln",
    "clip": Call("clip", a_min=-0.5, a_max=0.5),
    "floor": "floor",
    "round": "round",
    "round_half_even": _around,
    "isnan": "contrib.isnan",
    "logical_not": Laid("logical_not", _as_numbers(1)),
    "cast_float16": Call("cast", dtype="float16"),
    "cast_int32": Call("cast", dtype="int32"),
    # Of operands of one shape; broadcast_add and its like are other kernels.
    "add": "elemwise_add",
    "subtract": "elemwise_sub",
    "multiply": "elemwise_mul",
    "divide": "elemwise_div",
    "maximum": "broadcast_maximum",
    "minimum": "broadcast_minimum",
    "power": "broadcast_power",
    "mod": "broadcast_mod",
    "hypot": "broadcast_hypot",
    "arctan2": _arctan2,
    "greater": "broadcast_greater",
    "equal": "broadcast_equal",
    "logical_and": Laid("broadcast_logical_and", _as_numbers(2)),
    "where": Laid("where", _as_numbers(1)),
    "multiply_add": lambda F: lambda x, y, z: x * y + z,
    "add_row": Laid("broadcast_add", _AS_ROW),
}

GAPS: tuple[Gap, ...] = (
    Gap("mxnet has an isnan of arrays alone, not of symbols", "isnan", execution="hybridize"),
    Gap("mxnet cannot read an array of bfloat16 back", "cast_bfloat16"),
    Gap("mxnet's around refuses float16", "round_half_even", dtype="float16"),
    *(
        Gap(
            "mxnet's gradient has constants of float32, whatever the dtype",
            operation,
            direction="backward",
            dtype="float64",
        )
        for operation in ("erf", "erfinv", "lgamma")
    ),
)
