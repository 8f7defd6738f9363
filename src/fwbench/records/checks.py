"""Checks of stored values beyond their types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fwbench.records.units import NONE, Unit


@dataclass(frozen=True)
class Check:
    """Condition on a value beyond its type; on a list, on each of its values.

    Attributes:
        words: the condition, to be read behind the type: ``above 0``.
        holds: whether a value meets it.
        unit: of a number, which must be as large as a quantity of it can be.
    """

    words: str
    holds: Callable[[Any], bool]
    unit: Unit = NONE

    def is_met(self, value: Any) -> bool:
        """True if a value can be, and is what it must be."""
        return (not isinstance(value, _NUMBERS) or self.unit.can_be(value)) and self.holds(value)

    def of(self, kind: type) -> Callable[[Any], bool] | None:
        """The same for values of exactly one type, in as few calls as can be.

        Args:
            kind: the type.

        Returns:
            None where every value of the type meets it.
        """
        holds = None if self.holds is _always else self.holds
        if kind not in _NUMBERS:
            return self.is_met if kind is bool else holds
        least, most = self.unit.least, self.unit.most
        if holds is None:
            return lambda number: number == 0 or least <= abs(number) <= most
        return lambda number: (number == 0 or least <= abs(number) <= most) and holds(number)

    def can_be(self, value: Any) -> bool:
        """True if there can be such a quantity; true of whatever is not a number."""
        return not isinstance(value, _NUMBERS) or self.unit.can_be(value)


_NUMBERS = (float, int)


def _always(_: Any) -> bool:
    return True


ANY = Check("", _always)
POSITIVE = Check("above 0", lambda value: value > 0)
NOT_NEGATIVE = Check("of at least 0", lambda value: value >= 0)
FRACTION = Check("from 0 to 1", lambda value: 0 <= value <= 1)
ABOVE_MINUS_1 = Check("above -1", lambda value: value > -1)


def one_of(*choices: str) -> Check:
    """The check that a text is one of ``choices``."""
    return Check(f"out of {', '.join(choices)}", lambda value: value in choices)
