"""Rates and times as people write them: ``100mbit``, ``0.5ms``."""

from __future__ import annotations

import re
from collections.abc import Mapping

BITS_PER_S: Mapping[str, int] = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3}
SECONDS: Mapping[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)")


def quantity(text: str, units: Mapping[str, float]) -> float | None:
    """A number with one of these units; None for any other text.

    Args:
        text: as it was given.
        units: the factor of each.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None or found[2] not in units:
        return None
    return float(found[1]) * units[found[2]]


def written(value: float, units: Mapping[str, float]) -> str:
    """A quantity in the largest unit of which it is at least 1, or else in the smallest.

    Args:
        value: in the unit whose factor is 1.
        units: the factor of each.
    """
    by_size = sorted(units.items(), key=lambda unit: -unit[1])
    name, factor = next((unit for unit in by_size if value >= unit[1]), by_size[-1])
    return f"{value / factor:.12g}{name}"
