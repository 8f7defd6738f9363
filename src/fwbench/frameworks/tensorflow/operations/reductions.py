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

#: How many terms are added up or multiplied in the dtype itself without being off by too much.
_IN_DTYPE = (("prod", "float16", 1024), ("prod", "bfloat16", 256), ("cumsum", "bfloat16", 256))

GAPS: tuple[Gap, ...] = tuple(
    Gap(
        f"tensorflow computes so many terms of {dtype} in {dtype}",
        operation,
        execution,
        dtype=dtype,
        device="cpu",
        terms_above=terms,
    )
    for operation, dtype, terms in _IN_DTYPE
    for execution in ("eager", "graph")
)
