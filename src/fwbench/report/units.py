"""Quantities for people to read."""

from __future__ import annotations

_HUNDRED = 99.95  # what rounds to 100
_FOUR = 999.95


def count(number: int, noun: str) -> str:
    """``1 case``, ``2 cases``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def time(seconds: float) -> str:
    """Three significant digits in the largest unit that leaves something before the point."""
    if seconds == 0:
        return "0 s"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds * 1e9)} ns"


def _three_digits(number: float) -> str:
    """At least three significant digits, never with an exponent."""
    return f"{number:.0f}" if number >= _HUNDRED else f"{number:.3g}"


def four_digits(number: float) -> str:
    """At least four significant digits, never with an exponent: ``37.25``, ``712,300``."""
    return f"{number:,.0f}" if number >= _FOUR else f"{number:.4g}"
