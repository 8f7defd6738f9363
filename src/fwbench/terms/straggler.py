"""A replica that is late in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from fwbench.errors import UsageError
from fwbench.terms.quantities import SECONDS, quantity, written

#: The value of the toggle where no replica is late.
NOBODY = "none"

_LONGEST_S = 10.0


@dataclass(frozen=True)
class Straggler:
    """Which replica is late.

    Attributes:
        rank: its number, from 0.
        delay_s: how long it sleeps at the beginning of each step.
    """

    rank: int
    delay_s: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """The straggler that a text stands for: ``1@20ms``.

        Raises:
            UsageError: the text is something else, or out of range.
        """
        rank, _, delay = text.partition("@")
        delay_s = quantity(delay, SECONDS)
        if not rank.isdecimal() or delay_s is None or not 0.0 < delay_s <= _LONGEST_S:
            raise UsageError(
                f"straggler {text!r} is neither {NOBODY} nor a worker and a time of at most "
                f"{written(_LONGEST_S, SECONDS)}; give 1@20ms for 20 ms in each step of worker 1"
            )
        return cls(int(rank), delay_s)

    def __str__(self) -> str:
        """The shortest text that :meth:`parse` reads as this."""
        return f"{self.rank}@{written(self.delay_s, SECONDS)}"


def straggler(text: str) -> str:
    """The straggler as case ids have it.

    Raises:
        UsageError: the text is not a straggler's.
    """
    given = text.strip().lower()
    return given if given == NOBODY else str(Straggler.parse(given))


def straggler_of(name: str) -> Straggler | None:
    """Who is late; None for nobody.

    Args:
        name: as :func:`straggler` returned it.
    """
    return None if name == NOBODY else Straggler.parse(name)
