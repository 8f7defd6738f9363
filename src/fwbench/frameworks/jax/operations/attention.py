"""JAX: attention; its arrays have the positions before the heads."""

from __future__ import annotations

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_POSITIONS_FIRST = axes(*["bhtd->bthd"] * 3, results=["bhtd->bthd"])

OPERATIONS: Table = {
    "attention": Laid("nn.dot_product_attention", _POSITIONS_FIRST),
    "attention_causal": Laid(Call("nn.dot_product_attention", is_causal=True), _POSITIONS_FIRST),
}

GAPS: tuple[Gap, ...] = tuple(
    gap
    for name in OPERATIONS
    for gap in (
        Gap("jax computes its attention in float32, whatever the dtype", name, dtype="float64"),
        Gap(
            "jax compiles no float16 product into float32 on the CPU, which its attention asks for",
            name,
            execution="jit",
            dtype="float16",
            device="cpu",
        ),
    )
)
