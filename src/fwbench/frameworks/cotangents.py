"""What gradients begin with: a cotangent for each result that has one."""

from __future__ import annotations

from typing import Any


def differentiates_all(cotangent: Any) -> bool:
    """Whether every result has a cotangent.

    Args:
        cotangent: as :meth:`Framework.backward` gets it.
    """
    return not (isinstance(cotangent, tuple) and any(x is None for x in cotangent))


def differentiated(result: Any, cotangent: Any) -> tuple[Any, Any]:
    """The results that a gradient begins with, and their cotangents.

    Args:
        result: of the operation: an array, or several.
        cotangent: as :meth:`Framework.backward` gets it.
    """
    if differentiates_all(cotangent):
        return result, cotangent
    pairs = [(y, g) for y, g in zip(result, cotangent, strict=True) if g is not None]
    results, cotangents = map(list, zip(*pairs, strict=True))
    return results, cotangents
