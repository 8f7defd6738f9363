"""How far loss curves of the same work lie apart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence


def largest_deviation(
    curves: Mapping[str, Sequence[float]],
) -> tuple[float, int, tuple[str, str]] | None:
    """How far any two of several loss curves lie apart, over the epochs that both have.

    Args:
        curves: losses after each epoch, by name.

    Returns:
        The deviation in nats, the epoch (from 1) and the two names; None for fewer than two curves.
    """
    deviations = [
        (abs(loss - other_loss), epoch, (name, other))
        for (name, curve), (other, other_curve) in itertools.combinations(curves.items(), 2)
        for epoch, (loss, other_loss) in enumerate(zip(curve, other_curve, strict=False), 1)
    ]
    return max(deviations, key=lambda deviation: deviation[0], default=None)


def deviation_text(curves: Mapping[str, Sequence[float]]) -> str:
    """How far loss curves lie apart, in words; empty for one curve.

    Args:
        curves: losses after each epoch, by name.
    """
    largest = largest_deviation(curves)
    if largest is None:
        return ""
    deviation, epoch, (name, other) = largest
    return f" (at most {deviation:.2g} nats apart: {name} and {other}, epoch {epoch})"
