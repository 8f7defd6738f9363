"""TensorFlow: reductions."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sum": "reduce_sum",
    "sum_columns": Call("reduce_sum", axis=0),
    "sum_rows": Call("reduce_sum", axis=1),
    "mean": Call("reduce_mean", axis=1),
    "variance": Call("math.reduce_variance", axis=1),
    "std": Call("math.reduce_std", axis=1),
    "max": Call("reduce_max", axis=1),
    "min": Call("reduce_min", axis=1),
    "prod": Call("reduce_prod", axis=1),
    "norm": "norm",
    "logsumexp": Call("reduce_logsumexp", axis=1),
    "cumsum": Call("cumsum", axis=1),
    "any": Call("reduce_any", axis=1),
    "argmax": Call("argmax", axis=1),
    "argmin": Call("argmin", axis=1),
}

GAPS: tuple[Gap, ...] = ()
