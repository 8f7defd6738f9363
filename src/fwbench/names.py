"""Names that frameworks have: ``torch``, or ``torch@nightly`` in a named environment."""

from __future__ import annotations


def framework_of(reference: str) -> str:
    """The framework that a reference names: ``torch`` of ``torch@nightly``."""
    return reference.partition("@")[0]
