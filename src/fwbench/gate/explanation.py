"""Explanations: what a change is accounted for by, and how much of it is not.

A cause is a difference between both sides in addition to that of their times. Those that profiles
have found hold seconds of the change; what they do not hold is a figure of its own. Causes without
seconds, such as another number of threads, are facts that differ: they say why, and not how much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class CauseKind(StrEnum):
    """The subject of a cause; the cheapest to check first."""

    MACHINE = "machine"
    SETTINGS = "settings"
    BUILD = "build"
    WORK = "work"
    OPERATORS = "operators"
    FUNCTIONS = "functions"
    MEMORY = "memory"
    PROCESSOR = "processor"


@dataclass(frozen=True)
class Cause:
    """A difference between both sides in addition to that of their times.

    Attributes:
        text: both sides' values, and whatever else helps: ``threads: 2 -> 1``.
        time_s: what it adds to a call of the contender, by a profile; None of facts that differ.
        sides_s: what it takes of a call on either side, where the text has that behind a colon.
    """

    kind: CauseKind
    text: str
    time_s: float | None = None
    sides_s: Sequence[float] | None = None


@dataclass(frozen=True)
class Explanation:
    """The causes of one case's change.

    Attributes:
        key: of the case.
        base_s: of a call.
        contender_s: of a call.
        causes: the kinds in their order, the largest first within a kind.
        gaps: what could not be looked at, and why.
    """

    key: str
    name: str
    base_s: float
    contender_s: float
    causes: Sequence[Cause] = ()
    gaps: Sequence[str] = ()

    @property
    def difference_s(self) -> float:
        """Seconds that a call of the contender takes longer."""
        return self.contender_s - self.base_s

    @property
    def unexplained_s(self) -> float | None:
        """The part of that which no cause holds; None if none holds seconds."""
        held_s = [cause.time_s for cause in self.causes if cause.time_s is not None]
        return self.difference_s - sum(held_s) if held_s else None
