"""MXNet: softmax and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout, axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap


def _cross_entropy(F: Any) -> Any:
    """As in Gluon's loss; the operator of that name sums."""
    return lambda x, labels: -F.mean(F.pick(F.log_softmax(x), labels))


def _binary_cross_entropy(F: Any) -> Any:
    """As in Gluon's loss."""

    def loss(x: Any, answers: Any) -> Any:
        tail = F.Activation(-F.abs(x), act_type="softrelu")
        return F.mean(F.relu(x) - x * answers + tail)

    return loss


def _in_one_dtype(arrays: Arrays) -> list[NDArray[Any]]:
    """Labels in the dtype of the numbers."""
    x, labels = arrays
    return [x, labels.astype(x.dtype)]


def _counted(arrays: Arrays) -> list[NDArray[Any]]:
    x, labels = arrays
    return [x, labels.astype(np.int64)]


OPERATIONS: Table = {
    "softmax": Call("softmax", axis=-1),
    "log_softmax": Call("log_softmax", axis=-1),
    "cross_entropy": _cross_entropy,
    "cross_entropy_sum": Laid("softmax_cross_entropy", Layout(_in_one_dtype, _counted)),
    "binary_cross_entropy": _binary_cross_entropy,
    "mse": lambda F: lambda x, y: F.mean(F.square(x - y)),
    "huber": lambda F: lambda x, y: F.mean(F.smooth_l1(x - y, scalar=1.0)),
    "ctc_loss": Laid(lambda F, *_: F.CTCLoss, axes("ntc->tnc")),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet computes its CTCLoss in float32 alone", "ctc_loss", dtype=dtype)
    for dtype in ("float64", "float16")
)
