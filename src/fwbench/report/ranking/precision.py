"""In how many bits a case was computed, where these are fewer than its dtype has."""

from __future__ import annotations

from fwbench.cases import precision
from fwbench.records.facts import CaseFacts


def reduced_bits(facts: CaseFacts) -> int | None:
    """The bits of mantissa that a case was computed in; None for its dtype's own, or if unknown."""
    return facts.precision_bits if precision.is_reduced(facts) else None


def full_bits(facts: CaseFacts) -> int | None:
    """The bits of mantissa of the case's dtype; None for one that is not known."""
    return precision.of_dtype(facts.dtype)
