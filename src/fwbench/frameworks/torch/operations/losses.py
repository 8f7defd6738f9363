"""PyTorch: softmax and losses."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap


def _ctc_loss(torch: Any, n: int, times: int, labels: int) -> Any:
    """Of logarithms of shares, time first."""
    log_softmax, ctc_loss = torch.log_softmax, torch.nn.functional.ctc_loss
    lengths = torch.full((n,), times), torch.full((n,), labels)
    return lambda x, y: ctc_loss(log_softmax(x, -1), y, *lengths, reduction="none")


OPERATIONS: Table = {
    "softmax": Call("softmax", dim=-1),
    "log_softmax": Call("log_softmax", dim=-1),
    "cross_entropy": "nn.functional.cross_entropy",
    "cross_entropy_sum": Call("nn.functional.cross_entropy", reduction="sum"),
    "binary_cross_entropy": "nn.functional.binary_cross_entropy_with_logits",
    "mse": "nn.functional.mse_loss",
    "huber": "nn.functional.smooth_l1_loss",
    "ctc_loss": Laid(_ctc_loss, axes("ntc->tnc")),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap(f"torch has no {dtype} CTC loss", "ctc_loss", dtype=dtype)
    for dtype in ("float16", "bfloat16")
)
