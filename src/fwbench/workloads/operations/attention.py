"""Scaled dot-product attention, of all positions or of those up to one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

_SIZES = sizes_of("attention")["heads"]


def _projections(size: Shape, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    """Queries, keys, and values around 1, whose means do not cancel.

    Means around 0 of many values are small beside the errors of bfloat16 in their weights.
    """
    q, k, v = (rng.standard_normal(tuple(size.values())) for _ in range(3))
    return q, k, 1 + v


def _attend(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], *, causal: bool) -> NDArray[Any]:
    """Vaswani et al., "Attention is all you need" (2017), equation 1."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return weights / np.sum(weights, axis=-1, keepdims=True) @ v


def _attention(name: str, *, causal: bool, pairs: Callable[[int], float]) -> Operation:
    """Attention among ``pairs(t)`` pairs of positions.

    Each is in two products, and its weight takes five operations: scaling, the maximum, the
    exponential, the sum and the division. Of the gradient there are four products.
    """

    def cost(products: int, operations: int, arrays: int, size: Shape) -> Cost:
        heads = size["b"] * size["h"]
        pair_flops = 2 * products * size["d"] + operations
        return Cost(
            heads * pairs(size["t"]) * pair_flops, arrays * heads * float(size["t"] * size["d"])
        )

    return Operation(
        name=name,
        inputs=_projections,
        reference=lambda q, k, v: _attend(q, k, v, causal=causal),
        sizes=_SIZES,
        cost=lambda size: cost(2, 5, 4, size),
        # Forward; then read q, k, v and the gradient of the result, and write three gradients.
        backward_cost=lambda size: cost(6, 9, 11, size),
        terms=lambda size: size["t"],
    )


ATTENTION = family(
    "attention",
    # The causal one differs by a mask.
    ("attention",),
    _attention("attention", causal=False, pairs=lambda t: float(t * t)),
    _attention("attention_causal", causal=True, pairs=lambda t: t * (t + 1) / 2),
)
