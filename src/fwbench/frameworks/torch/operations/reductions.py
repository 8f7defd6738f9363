"""PyTorch: reductions."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sum": "sum",
    "sum_columns": Call("sum", dim=0),
    "sum_rows": Call("sum", dim=1),
    "mean": Call("mean", dim=1),
    "variance": Call("var", dim=1, correction=0),
    "std": Call("std", dim=1, correction=0),
    # max and min would find the positions, too.
    "max": Call("amax", dim=1),
    "min": Call("amin", dim=1),
    "prod": Call("prod", dim=1),
    "norm": "linalg.vector_norm",
    "logsumexp": Call("logsumexp", dim=1),
    "cumsum": Call("cumsum", dim=1),
    "any": Call("any", dim=1),
    "argmax": Call("argmax", dim=1),
    "argmin": Call("argmin", dim=1),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap(
        f"torch multiplies so many factors of {dtype} in {dtype}",
        "prod",
        dtype=dtype,
        device="cpu",
        terms_above=factors,
    )
    for dtype, factors in (("float16", 1024), ("bfloat16", 256))
)
