"""Student's t of sessions.

All comparisons are of ratios: a contender's times against a base's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import stdtr, stdtrit

#: Share of the comparisons that show a detectable change.
_DETECTED = 0.9

#: The largest change that is looked for.
_TENFOLD = math.log(10)


@dataclass(frozen=True)
class SessionRatio:
    """Difference of the mean logarithms of two sides, by Student's t with a common variance.

    Student, "The probable error of a mean", Biometrika 6, 1908. One value is one session.
    """

    #: The logarithm of the ratio.
    change: float
    #: Its standard error; infinite where no side has two values.
    error: float
    freedom: int

    @classmethod
    def between(cls, base: Sequence[float], contender: Sequence[float], least: float) -> Self:
        """The difference of the contender from the base.

        Args:
            base: figures above 0.
            least: standard deviation that sessions have at least: figures that are counted in pages
                or ticks agree exactly, until they do not.
        """
        sides = [np.log(np.asarray(side, dtype=float)) for side in (base, contender)]
        change = float(sides[1].mean() - sides[0].mean())
        freedom = sum(side.size - 1 for side in sides)
        if not freedom:
            return cls(change, math.inf, 0)
        variance = sum(float(np.square(side - side.mean()).sum()) for side in sides) / freedom
        error = max(math.sqrt(variance), least) * math.sqrt(sum(1 / side.size for side in sides))
        return cls(change, error, freedom)

    @property
    def ratio(self) -> float:
        """The contender's figure over the base's."""
        return math.exp(self.change)

    @property
    def p(self) -> float:
        """Probability that equal sides look at least as different, in this direction."""
        return float(stdtr(self.freedom, -abs(self.change) / self.error)) if self.freedom else 0.5

    def is_beyond(self, threshold: float) -> bool:
        """True if it is a change by a threshold or more, in either direction."""
        return abs(self.change) >= math.log1p(threshold)

    def interval(self, confidence: float) -> tuple[float | None, float | None]:
        """Lower and upper bound of the ratio, each of which holds with this confidence."""
        if not self.freedom:
            return None, None
        width = float(stdtrit(self.freedom, confidence)) * self.error
        return _exp(self.change - width), _exp(self.change + width)

    def detectable(self, threshold: float, level: float) -> float | None:
        """The smallest slow-down that nine of ten such comparisons would have shown.

        Returns:
            A share; None if tenfold times would not have shown either.
        """
        if not self.freedom:
            return None
        quantiles = stdtrit(self.freedom, 1 - level) + stdtrit(self.freedom, _DETECTED)
        change = float(quantiles) * self.error
        return None if change > _TENFOLD else max(threshold, math.exp(change) - 1)


def _exp(change: float) -> float:
    """A ratio, within the numbers that JSON has."""
    return math.exp(max(min(change, _FARTHEST), -_FARTHEST))


#: Bounds are given up to here: a factor of a million.
_FARTHEST = math.log(1e6)
