"""PyTorch: softmax and losses."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "softmax": Call("softmax", dim=-1),
    "log_softmax": Call("log_softmax", dim=-1),
    "cross_entropy": "nn.functional.cross_entropy",
    "cross_entropy_sum": Call("nn.functional.cross_entropy", reduction="sum"),
    "binary_cross_entropy": "nn.functional.binary_cross_entropy_with_logits",
    "mse": "nn.functional.mse_loss",
    "huber": "nn.functional.smooth_l1_loss",
}

GAPS: tuple[Gap, ...] = ()
