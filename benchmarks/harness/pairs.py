"""Pairs of measurements of the same calls, by fwbench and by something else, and their ratios."""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import bounds

from fwbench.cases.case import Case
from fwbench.measure import empty_stack

#: By framework, operation and size: what fwbench reported, and what the other one found.
Pairs = dict[tuple[str, str, str], list[tuple[float, float]]]

_OTHER = "other_s"


@dataclass
class Rounds:
    """Rounds, and calls a round, that fwbench made of each case, for the loop that comes next."""

    known: dict[str, tuple[int, int]] = field(default_factory=dict)

    def take(self, case: Case) -> tuple[int, int]:
        """Rounds and calls of a case that was measured just now, or in the turn before."""
        if case.benchmark.stats is not None:
            stats = case.benchmark.stats
            self.known[case.cell.id] = (stats.stats.rounds, stats.iterations)
        return self.known[case.cell.id]


def measure(case: Case, turn: int, other: Callable[[Case], float]) -> None:
    """Measure a case by fwbench and by something else, which of them first by turns.

    Args:
        case: the case.
        turn: its number.
        other: returns seconds a call.
    """
    call = partial(other, case)
    if case.framework.reads_stack:  # by hand one writes a script, whose stack is shallow
        call = partial(empty_stack.call, call)
    if turn % 2:
        case.benchmark.extra_info[_OTHER] = call()
        case.measure()
    else:
        case.measure()
        case.benchmark.extra_info[_OTHER] = call()


def measured(file: str, rounds: int, *options: str) -> Pairs:
    """The pairs of a file of tests that call :func:`measure`.

    Args:
        file: of the tests.
        rounds: how many sessions.
        options: of the sessions.
    """
    pairs: Pairs = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            # Hand-written calls go where the framework likes: here to the CPU, like the cases.
            for record in bounds.records(
                Path(folder) / "run.json", file, *options, CUDA_VISIBLE_DEVICES="-1"
            ):
                facts = record["extra_info"]["fwbench"]
                size = str(facts.get("shape") or facts["size"])
                key = (facts["framework"], facts["workload"], size)
                pairs[key].append((record["stats"]["median"], record["extra_info"][_OTHER]))
    return pairs


def ratio(
    key: tuple[str, str, str], pairs: list[tuple[float, float]], within: float
) -> bounds.Finding:
    """The median ratio of fwbench's figure to the other one, with its quartiles.

    Args:
        key: framework, operation and size.
        pairs: of this case.
        within: how far from 1 it may be.
    """
    other_s = statistics.median(other for _, other in pairs)
    low, middle, high = statistics.quantiles([fwbench_s / other for fwbench_s, other in pairs], n=4)
    return bounds.Finding(
        f"{' '.join(map(str, key))} ({1e6 * other_s:.4g} us)",
        f"{middle:.3f} ({low:.3f} to {high:.3f})",
        f"{1 - within:g} to {1 + within:g}",
        abs(middle - 1) <= within,
    )
