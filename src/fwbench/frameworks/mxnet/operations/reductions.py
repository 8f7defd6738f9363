"""MXNet: reductions."""

from __future__ import annotations

from functools import partial
from typing import Any

from fwbench.frameworks.mxnet.operators import NumPyCall
from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _variance(F: Any, x: Any) -> Any:
    """In parts: a function for it is wrong in each namespace of MXNet 1.9.1.

    ``F.moments`` is when it is hybridized and the mean not used, the gradient of ``np.var`` always.
    """
    return F.mean(F.square(F.broadcast_sub(x, F.mean(x, axis=1, keepdims=True))), axis=1)


def _logsumexp(F: Any, x: Any) -> Any:
    peaks = F.max(x, axis=1, keepdims=True)
    sums = F.sum(F.exp(F.broadcast_sub(x, peaks)), axis=1, keepdims=True)
    return F.reshape(F.log(sums) + peaks, shape=(-1,))


OPERATIONS: Table = {
    "sum": "sum",
    "sum_columns": Call("sum", axis=0),
    "sum_rows": Call("sum", axis=1),
    "mean": Call("mean", axis=1),
    "variance": lambda F: partial(_variance, F),
    "std": lambda F: lambda x: F.sqrt(_variance(F, x)),
    "max": Call("max", axis=1),
    "min": Call("min", axis=1),
    "prod": Call("prod", axis=1),
    "norm": "norm",
    "logsumexp": lambda F: partial(_logsumexp, F),
    "cumsum": Call("cumsum", axis=1),
    "any": NumPyCall("any", axis=1),
    # nd's positions are in the dtype of the operand: float16 does not have those above 2048.
    "argmax": NumPyCall("argmax", axis=1),
    "argmin": NumPyCall("argmin", axis=1),
}

GAPS: tuple[Gap, ...] = (
    Gap("mxnet adds up the squares of float16 in float16", "norm", dtype="float16", device="cpu"),
    Gap(
        "mxnet multiplies so many factors of float16 in float16",
        "prod",
        dtype="float16",
        device="cpu",
        terms_above=1024,
    ),
)
