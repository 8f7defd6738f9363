"""Repeatability of medians, as sessions state it, against what pairs of sessions show.

This file is a script and a test file in one. The script runs sessions of forty cases, ten a
framework, which visit twelve of them twice (`--fw-revisit`). Each session makes a pair with the
next one, and each case of a pair two medians of equal work: twins.

- The 90 % interval of the ratio of two twins, which both sessions state, must hold 1 in 85 % of
  them.
- At most 5 % of twins may have a winner, by the rule that ranks frameworks.

Contended cases are in neither: their times are upper bounds.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import bounds
import pytest

from fwbench.cases.case import Case
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, blur
from fwbench.records.repeatability import INTERVAL, stated
from fwbench.records.stored import StoredRun, load
from fwbench.report.condition import is_contended
from fwbench.report.ranking import Decision, works
from fwbench.workloads import add, exp, gemm, sigmoid, transpose

_HELD_AT_LEAST = 85.0
_WINNERS_AT_MOST = 5.0

_SESSIONS = 12

#: The rule of earlier versions, for comparison.
_CONSTANT = 1.05

_FRAMEWORKS = "mxnet,numpy,tensorflow,torch"


@pytest.mark.fwbench(add, exp, sigmoid, sizes=(1_000, 1_000_000), devices="cpu", executions="eager")
def test_elementwise(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(gemm, transpose, sizes=(64, 512), devices="cpu", executions="eager")
def test_matrices(case: Case) -> None:
    case.measure()


def _session(path: Path) -> StoredRun:
    """The run of a session."""
    bounds.records(path, __file__, f"--fw={_FRAMEWORKS}", "--fw-revisit=12")
    return load(path)


def _twins(first: StoredRun, second: StoredRun) -> Iterator[tuple[Measurement, Measurement]]:
    """The cases that both sessions have measured without others."""
    known = {record.key: record for record in second.records if not is_contended(record.facts)}
    for record in first.records:
        if record.key in known and not is_contended(record.facts):
            yield record, known[record.key]


def _has_winner(first: Measurement, second: Measurement) -> bool:
    """True if one of two cases would be ranked above the other, were they two frameworks'."""
    rivals = [
        replace(case, facts=case.facts | CaseFacts(framework=name))
        for name, case in (("first", first), ("second", second))
    ]
    (contest,) = works(rivals)
    return contest.decision is Decision.WON


def _ratio(first: Measurement, second: Measurement) -> float:
    """The larger median over the smaller one."""
    return max(first.median_s, second.median_s) / min(first.median_s, second.median_s)


def main() -> int:
    """Run the sessions, print the table, and give the exit status."""
    sessions = bounds.arguments(__doc__, rounds=_SESSIONS).rounds
    with tempfile.TemporaryDirectory() as folder:
        runs = [_session(Path(folder) / "run.json") for _ in range(sessions)]
    twins = [pair for runs_of in itertools.pairwise(runs) for pair in _twins(*runs_of)]
    if not twins:
        raise SystemExit("no case was measured without others in two sessions: the machine is busy")
    held = statistics.fmean(_ratio(*pair) <= blur([pair], INTERVAL) for pair in twins)
    won = statistics.fmean(_has_winner(*pair) for pair in twins)
    before = statistics.fmean(_ratio(*pair) >= _CONSTANT for pair in twins)
    for run in runs:
        print(stated((record.framework, record.repeatability) for record in run.records))
    return bounds.conclude(
        [
            bounds.Finding("pairs of a case", f"{len(twins)}, of {sessions} sessions"),
            bounds.Finding(
                "90 % intervals that hold 1",
                f"{100 * held:.1f} %",
                f"at least {_HELD_AT_LEAST:g} %",
                100 * held >= _HELD_AT_LEAST,
            ),
            bounds.at_most("twins with a winner", 100 * won, _WINNERS_AT_MOST, "%"),
            bounds.Finding("twins with a winner, from 5 % on", f"{100 * before:.1f} %"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
