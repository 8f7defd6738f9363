"""Attention, by the formula of the paper, position by position."""

from __future__ import annotations

import math

import numpy as np

from fwbench.workloads import ATTENTION, Operation
from support.operations import for_each, sized


@for_each(ATTENTION)
def test_references_are_the_formula(operation: Operation) -> None:
    """A mean of values, weighted with exponentials of products with keys; later ones left out."""
    q, k, v = operation.operands(sized(operation, "b2h1t5d3"))
    result = operation.reference(q, k, v)
    for batch in range(2):
        for at in range(5):
            seen = range(at + 1 if operation.name == "attention_causal" else 5)
            weights = [
                math.exp(sum(q[batch, 0, at] * k[batch, 0, other]) / math.sqrt(3)) for other in seen
            ]
            mean = sum(w * v[batch, 0, other] for w, other in zip(weights, seen, strict=True))
            np.testing.assert_allclose(result[batch, 0, at], mean / sum(weights), rtol=1e-12)


def test_causal_attention_does_not_see_what_comes() -> None:
    """The last key and value change the last result alone."""
    causal = ATTENTION[1]
    q, k, v = causal.operands(causal.smallest)
    before = causal.reference(q, k, v)
    k[..., -1, :], v[..., -1, :] = 0.0, 0.0
    after = causal.reference(q, k, v)
    np.testing.assert_array_equal(after[..., :-1, :], before[..., :-1, :])
    assert np.all(after[..., -1, :] != before[..., -1, :])
