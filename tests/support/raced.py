"""Races and budgets as sessions record them, for those who show them."""

from __future__ import annotations

from typing import Any

from fwbench.records.session_facts import (
    StoredBudget,
    StoredContestant,
    StoredGroup,
    StoredRace,
    StoredUnsettled,
)


def contestant(name: str, standing: str, time_s: float | None, **facts: Any) -> StoredContestant:
    """A contestant that was launched twelve times.

    Args:
        name: framework and execution.
        standing: of the contestant.
        time_s: its median.
        facts: what else is recorded of it.
    """
    given: dict[str, Any] = {"case": f"test.py::test_it[{name}]", "launches": 12, "contended": 0}
    return StoredContestant(**{**given, **facts}, name=name, standing=standing, time_s=time_s)


def group(title: str, verdict: str, *contestants: StoredContestant, **facts: Any) -> StoredGroup:
    """A group with a threshold of 3 %."""
    return StoredGroup(
        title=title, verdict=verdict, threshold=0.03, contestants=[*contestants], **facts
    )


WON = group(
    "gemm cpu forward float32 256",
    "fastest",
    contestant("torch eager", "fastest", 12.3e-6),
    contestant("numpy eager", "slower", 13.8e-6, behind=0.122, why="slower than torch eager"),
    contestant("mxnet eager", "slower", 60e-6, behind=3.9, why="slower than torch eager"),
    contestant("jax jit", "lost", None, launches=0, why="failed"),
)

TIED = group(
    "exp cpu forward float32 100",
    "tie",
    contestant("numpy eager", "tied", 1e-6),
    contestant("torch eager", "tied", 1.01e-6, behind=0.01),
)

OPEN = group(
    "sum cpu forward float32 100",
    "undecided",
    contestant("numpy eager", "open", 2e-6),
    contestant("torch eager", "open", 2.1e-6, behind=0.05, contended=4),
    more_launches=14,
    more_s=126.0,
)

RACE = StoredRace(level=0.01, groups=[WON, TIED, OPEN])


def budget(**facts: Any) -> StoredBudget:
    """A budget of five minutes, of which all but a little was spent."""
    given: dict[str, Any] = {"budget_s": 300.0, "took_s": 290.0, "launches": 12, "cases": 8}
    return StoredBudget(**{"launch_s": 24.0, **given, **facts})


def unsettled(name: str, uncertainty: float | None) -> StoredUnsettled:
    """A case whose time is uncertain by this share; None after a single launch."""
    return StoredUnsettled(case=f"test.py::test_it[{name}]", name=name, uncertainty=uncertainty)
