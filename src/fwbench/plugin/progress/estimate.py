"""How long measurements still take: from earlier runs, or else from the cases' own limits."""

from __future__ import annotations

from collections.abc import Mapping

from fwbench.plugin.progress.status import whole

#: Of so many finished cases the times correct the estimate of the others.
_ENOUGH = 3


class Estimate:
    """The time that is left, while cases finish one after the other.

    What finished cases took, in proportion to what was expected of them, is expected of the others
    as well: a limit is seldom reached, and an earlier run may have had other settings.

    Args:
        expected_s: of each case, by its node id; None where nothing is known.

    Attributes:
        took_s: of the cases that have finished, how long they took at last.
    """

    def __init__(self, expected_s: Mapping[str, float | None]) -> None:
        self.took_s: dict[str, float] = {}
        self._expected_s = expected_s
        self._finished = 0
        self._finished_s = self._finished_expected_s = 0.0
        self.plan({})

    def plan(self, cases: Mapping[str, int]) -> None:
        """Set how often each case will still be measured."""
        expected = [(self._expected_s.get(case), number) for case, number in cases.items()]
        self._known_s = sum(number * seconds for seconds, number in expected if seconds)
        self._unknown = sum(number for seconds, number in expected if not seconds)

    def finish(self, case: str, took_s: float) -> None:
        """Note what a case took, once more."""
        self.took_s[case] = took_s
        expected_s = self._expected_s.get(case)
        if not expected_s:
            self._unknown -= 1
            return
        self._known_s -= expected_s
        self._finished += 1
        self._finished_s += took_s
        self._finished_expected_s += expected_s

    def left(self, running: str, elapsed_s: float, share: float = 0.0) -> str:
        """The time that is left, for people; empty where nothing is known.

        Args:
            running: the case that is being measured.
            elapsed_s: how long it has been.
            share: of it that is known to be done; 0 if that is not known.
        """
        factor = self._factor()
        others_s, unknown = self._known_s, self._unknown
        expected_s = self._expected_s.get(running)
        if expected_s:
            others_s -= expected_s
        else:
            unknown -= 1
        running_s = elapsed_s / share if share else factor * (expected_s or 0.0)
        left_s = factor * max(0.0, others_s) + max(0.0, running_s - elapsed_s)
        if unknown or not running_s:
            return f"more than {whole(left_s)} left" if left_s else ""
        return f"{whole(left_s)} left"

    def _factor(self) -> float:
        if self._finished < _ENOUGH:
            return 1.0
        return self._finished_s / self._finished_expected_s
