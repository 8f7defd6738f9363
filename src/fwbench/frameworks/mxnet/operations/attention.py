"""MXNet: attention, by the formula; its batches of products have one axis for batch and heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap


def _future(F: Any, positions: Any) -> Any:
    """Minus infinity, nearly, for every pair of a position and a later one."""
    at = F.contrib.arange_like(positions, axis=1)
    later = F.broadcast_lesser(F.expand_dims(at, axis=1), F.expand_dims(at, axis=0))
    return F.expand_dims(-1e9 * later, axis=0)


def _attention(F: Any, *, causal: bool) -> Callable[..., Any]:
    def attend(*projections: Any) -> Any:
        q, k, v = (x.reshape((-3, 0, 0)) for x in projections)
        scores = F.batch_dot(F.contrib.div_sqrt_dim(q), k, transpose_b=True)
        if causal:
            scores = F.broadcast_add(scores, _future(F, q))
        return F.reshape_like(F.batch_dot(F.softmax(scores), v), projections[0])

    return attend


OPERATIONS: Table = {
    "attention": lambda F: _attention(F, causal=False),
    "attention_causal": lambda F: _attention(F, causal=True),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap("mxnet has no float16 product on the CPU", name, dtype="float16", device="cpu")
    for name in OPERATIONS
)
