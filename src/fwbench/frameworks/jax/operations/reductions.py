"""JAX: reductions."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "sum": "numpy.sum",
    "sum_columns": Call("numpy.sum", axis=0),
    "sum_rows": Call("numpy.sum", axis=1),
    "mean": Call("numpy.mean", axis=1),
    "variance": Call("numpy.var", axis=1),
    "std": Call("numpy.std", axis=1),
    "max": Call("numpy.max", axis=1),
    "min": Call("numpy.min", axis=1),
    "prod": Call("numpy.prod", axis=1),
    "norm": "numpy.linalg.norm",
    "logsumexp": Call("nn.logsumexp", axis=1),
    "cumsum": Call("numpy.cumsum", axis=1),
    "any": Call("numpy.any", axis=1),
    "argmax": Call("numpy.argmax", axis=1),
    "argmin": Call("numpy.argmin", axis=1),
}

GAPS: tuple[Gap, ...] = ()
