"""What is being done just now, as a line of text."""

from __future__ import annotations

from dataclasses import dataclass

from fwbench.records.units import duration

#: A name is not shortened below this, however narrow the terminal is.
_SHORTEST_NAME = 8

_ELLIPSIS = "..."


def whole(seconds: float) -> str:
    """A time that is shown anew every second, without fractions: ``45 s``, ``3 min 10 s``."""
    return duration(max(0, round(seconds)))


@dataclass(frozen=True)
class Status:
    """What is being done.

    Attributes:
        head: how far it is: ``case 3 of 12, 40 s left``; may be empty.
        name: of what is being done: a case id. In a narrow terminal it is shortened first.
        tail: what else is known of it: ``4 s``; may be empty.
    """

    head: str
    name: str
    tail: str = ""

    def __str__(self) -> str:
        return self._joined(self.name)

    def fit(self, columns: int) -> str:
        """The text within a number of columns."""
        excess = len(str(self)) - columns
        if excess <= 0:
            return str(self)
        kept = max(_SHORTEST_NAME, len(self.name) - excess) - len(_ELLIPSIS)
        shorter = min(self.name, f"{self.name[:kept]}{_ELLIPSIS}", key=len)
        return self._joined(shorter)[: max(0, columns)]

    def _joined(self, name: str) -> str:
        known = ", ".join(filter(None, (name, self.tail)))
        return ": ".join(filter(None, (self.head, known)))
