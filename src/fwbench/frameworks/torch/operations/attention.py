"""PyTorch: attention."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "attention": "nn.functional.scaled_dot_product_attention",
    "attention_causal": Call("nn.functional.scaled_dot_product_attention", is_causal=True),
}

GAPS: tuple[Gap, ...] = ()
