"""Patience with launches: says what everybody waits for, and waits no more after the budget."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fwbench.errors import ComparisonError
from fwbench.gate.samples import SampleSet
from fwbench.processes.session import ChildSession
from fwbench.records.units import duration
from fwbench.turns.referee import LONG_S

#: How often it is looked at whether the budget is over, where a session is waited for.
_POLL_S = 5.0


class PairCutShort(ComparisonError):
    """A launch of a pair has not come to its end, and would not if it were repeated.

    Attributes:
        why: in a sentence, without its last output.
        key: of the test that it was at; empty if none is known.
        sides: whose launches were at it.
        pair: what both sides had measured by then, where that is all that there is.
    """

    def __init__(self, why: str, key: str, sides: Sequence[int] = (), output: str = "") -> None:
        super().__init__(f"{why}{output}")
        self.why = why
        self.key = key
        self.sides = sides
        self.pair: tuple[SampleSet, SampleSet] | None = None


class InterruptedPair(KeyboardInterrupt):
    """The command was interrupted while a pair was measured.

    Attributes:
        pair: what both sides had measured by then, where that is all that there is.
    """

    def __init__(self, pair: tuple[SampleSet, SampleSet] | None) -> None:
        super().__init__()
        self.pair = pair


class BudgetIsOver(PairCutShort):
    """A launch was ended after the budget, since everybody waited for one test."""


class Patience:
    """Says what launches wait for, and ends them once the budget is over.

    Attributes:
        ends_s: when it is, by the monotonic clock.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self.ends_s = math.inf
        self._say = say

    def tell(self, names: Sequence[str], sides: Sequence[int], key: str, for_s: float) -> None:
        """Say for which of some sides everybody waits; whether it hangs is for others to judge.

        Raises:
            BudgetIsOver: there is no more time to wait.
        """
        who, what = " and ".join(names[side] for side in sides), key or "what comes first"
        if time.monotonic() > self.ends_s:
            raise BudgetIsOver(
                f"{who}: at {what} for {duration(for_s)} when the budget was over, so the launch "
                "was ended; pytest-timeout ends such a test alone (--timeout 60)",
                key,
                sides,
            )
        self._say(
            f"{who}: at {what} for {duration(for_s)}; if it hangs, Ctrl-C or the end of the budget "
            "ends the launch, and pytest-timeout the test alone (--timeout 60)"
        )

    def wait(self, name: str, child: ChildSession, records: Path) -> None:
        """Wait for a session that takes no turns: of what it is at nothing is known.

        Args:
            records: its file, which grows with each test that it has measured.

        Raises:
            BudgetIsOver: it has measured nothing for a minute, and after the budget.
        """
        size, since_s = -1, 0.0
        while not child.wait(_POLL_S):
            now_s, before = time.monotonic(), size
            size = records.stat().st_size if records.is_file() else 0
            since_s = since_s if size == before else now_s
            if now_s > max(self.ends_s, since_s) + LONG_S:
                raise BudgetIsOver(
                    f"a launch of {name} measured nothing for {duration(LONG_S)} after the end of "
                    "the budget, and was ended; pytest-timeout ends tests that hang (--timeout 60)",
                    "",
                )
