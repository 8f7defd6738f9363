"""Histories of launches whose times are made up, for those who choose the next launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fwbench.gate.budget import History, Result

#: What every case takes of a launch, and what a launch takes beyond its cases.
CASE_S, OVERHEAD_S = 2.0, 1.0


def launch(history: History, times_s: Mapping[str, float | None], *contended: str) -> None:
    """Add a launch to a history.

    Args:
        history: to be added to.
        times_s: of its cases; None for one that failed.
        contended: the cases that had to share their processors.
    """
    for case, time_s in times_s.items():
        lost = "failed" if time_s is None else ""
        history.add(case, Result(CASE_S, time_s, case in contended, lost=lost))
    history.end_launch(CASE_S * len(times_s) + OVERHEAD_S)


def history(**times_s: Sequence[float]) -> History:
    """A history of launches of all cases.

    Args:
        times_s: of each case, one a launch; as many of each.
    """
    made = History()
    for values in zip(*times_s.values(), strict=True):
        launch(made, dict(zip(times_s, values, strict=True)))
    return made


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s
