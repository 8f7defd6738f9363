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

#: How many terms float16 bears: those of a row until it is off by more than it may be, and all of a
#: mean until their sum is beyond what float16 has.
_IN_FLOAT16 = {
    **dict.fromkeys(("softmax", "log_softmax"), 1024),
    **dict.fromkeys(("cross_entropy", "cross_entropy_sum"), 128 * 1024),  # as many rows of those
    **dict.fromkeys(("binary_cross_entropy", "mse", "huber"), 16 * 1024),
}

GAPS: tuple[Gap, ...] = (
    *(
        Gap("mxnet computes its CTCLoss in float32 alone", "ctc_loss", dtype=dtype)
        for dtype in ("float64", "float16")
    ),
    *(
        Gap(
            "mxnet adds up so many terms of float16 in float16",
            operation,
            dtype="float16",
            device="cpu",
            terms_above=terms,
        )
        for operation, terms in _IN_FLOAT16.items()
    ),
)
