"""Repeatability of medians, as sessions state it, against what pairs of sessions show.

This file is a script and a test file in one. The script runs sessions of forty cases, ten a
framework, which visit twelve of them twice (`--fw-revisit`). Each session makes a pair with every
other one, and each case of a pair two medians of equal work: twins.

- The 90 % interval of the ratio of two twins, which both sessions state, must hold 1 in 85 % of
  them.
- At most 5 % of twins may have a winner, by the rule that ranks frameworks.
- Of two frameworks whose times differ by about 25 %, over all sessions, the faster one must win in
  90 % of the sessions.

The same is asked of sessions that visit nothing twice, and know the one before them instead: of the
pairs of which neither was the other's earlier session. There the 90 % interval of the ratio of two
cases of a row, which is about the mean of two sessions' ratios, must hold that of two other
sessions, too.

Whole sessions are judged as well: record them with `pytest benchmarks --benchmark-autosave`, and
name their folder (`--sessions .benchmarks/...`).

Contended cases are in none: their times are upper bounds.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import bounds
import pytest

from fwbench.cases.case import Case
from fwbench.records.measurement import Measurement, blur, group_by, ratio
from fwbench.records.repeatability import INTERVAL, of_earlier, stated
from fwbench.records.stored import StoredRun, load
from fwbench.report.condition import is_contended
from fwbench.report.ranking import Contest, Decision, works
from fwbench.workloads import add, exp, gemm, sigmoid, transpose

_HELD_AT_LEAST = 85.0
_WINNERS_AT_MOST = 5.0
_RIGHT_AT_LEAST = 90.0

#: Ratios of about 25 %.
_APART = 1.2, 1.5

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


def _session(path: Path, threads: int) -> StoredRun:
    """The run of a session."""
    options = f"--fw={_FRAMEWORKS}", "--fw-revisit=12", f"--fw-threads={threads}"
    bounds.records(path, __file__, *options)
    return load(path)


def _twins(first: StoredRun, second: StoredRun) -> Iterator[tuple[Measurement, Measurement]]:
    """The cases that both sessions have measured without others."""
    known = {record.key: record for record in second.records if not is_contended(record.facts)}
    for record in first.records:
        if record.key in known and not is_contended(record.facts):
            yield record, known[record.key]


def _has_winner(first: Measurement, second: Measurement) -> bool:
    """True if one of two cases would be ranked above the other, were they two frameworks'.

    They keep their framework's name, by which their sessions know how far its medians repeat.
    """
    return _ratio(first, second) > blur([(first, second)])


def _rows(run: StoredRun) -> Iterator[tuple[str, list[Measurement]]]:
    """The cases of each row of a session that were measured without others."""
    for contest in works(run.records):
        yield contest.title, [c for c in contest.comparable if not is_contended(c.facts)]


def _contests(runs: Sequence[StoredRun]) -> Iterator[bool | None]:
    """Winners of two frameworks some 25 % apart, in each session: the right one, or none (None)."""
    seen: dict[tuple[str, str, str], list[tuple[Contest, float]]] = defaultdict(list)
    for title, row in itertools.chain.from_iterable(map(_rows, runs)):
        of = group_by(row, lambda case: case.facts.framework)
        for first, second in itertools.combinations(sorted(of), 2):
            contest = Contest([*of[first], *of[second]], "")
            faster, slower = contest.rivals
            longer = slower.fastest.median_s / faster.fastest.median_s
            is_first = _framework(contest) == first
            seen[title, first, second].append((contest, longer if is_first else 1 / longer))
    for (_, first, second), contests in seen.items():
        apart = statistics.median(longer for _, longer in contests)
        if 2 * len(contests) < len(runs) or not _APART[0] <= max(apart, 1 / apart) <= _APART[1]:
            continue
        for contest, _ in contests:
            is_won = contest.decision is Decision.WON
            yield _framework(contest) == (first if apart > 1 else second) if is_won else None


def _framework(contest: Contest) -> str:
    """The one that is ahead, whether it can be told or not."""
    return contest.rivals[0].fastest.facts.framework


def _intervals(run: StoredRun) -> dict[tuple[str, str], tuple[float, float]]:
    """The middle and the half of the interval of each ratio of a row, as logarithms, by cases."""
    found = {}
    for _, row in _rows(run):
        for first, second in itertools.combinations(sorted(row, key=lambda case: case.key), 2):
            low, high = map(math.log, ratio(first, second).interval(INTERVAL))
            found[first.key, second.key] = (low + high) / 2, (high - low) / 2
    return found


def _ratios(sessions: Sequence[tuple[StoredRun, StoredRun]]) -> Iterator[bounds.Finding]:
    """Share of the ratios of two sessions whose means are as near as their intervals say."""
    of = {id(run): _intervals(run) for both in sessions for run in both}
    held = [
        abs(before[0] - after[0]) <= math.hypot(before[1], after[1])
        for first, second in sessions
        for key, before in of[id(first)].items()
        if (after := of[id(second)].get(key))
    ]
    if held:
        yield _held(f"90 % intervals of ratios that hold, of {len(held)}", held)


def _held(what: str, held: Sequence[bool]) -> bounds.Finding:
    """Share of intervals that hold what they should."""
    share = 100 * statistics.fmean(held)
    least = f"at least {_HELD_AT_LEAST:g} %"
    return bounds.Finding(what, f"{share:.1f} %", least, share >= _HELD_AT_LEAST)


def _ratio(first: Measurement, second: Measurement) -> float:
    """The larger median over the smaller one."""
    return max(first.median_s, second.median_s) / min(first.median_s, second.median_s)


def _after(before: StoredRun, run: StoredRun) -> StoredRun:
    """A session as it would be if it had visited nothing twice, and known an earlier one."""
    pairs: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for record, earlier in _twins(run, before):
        pairs[record.framework][record.nodeid] = [record.median_s, earlier.median_s]
    revisits = {name: of_earlier(those) for name, those in pairs.items()}
    return replace(run, records=[replace(record, revisits=revisits) for record in run.records])


def _rights(winners: Sequence[bool | None]) -> Iterator[bounds.Finding]:
    """Shares of the contests that the right framework won, and the wrong one."""
    if winners:
        right = 100 * winners.count(True) / len(winners)
        yield bounds.Finding(
            f"the faster of two frameworks wins, {len(winners)} times",
            f"{right:.1f} %, the slower one {100 * winners.count(False) / len(winners):.1f} %",
            f"at least {_RIGHT_AT_LEAST:g} %",
            right >= _RIGHT_AT_LEAST,
        )


def _recorded(folder: Path) -> list[StoredRun]:
    """Sessions that have known an earlier one, in the order of their files' names."""
    runs = [load(path) for path in sorted(folder.glob("*.json"))]
    return [run for run in runs if any(r.earlier for r in (run.session.revisits or {}).values())]


def _measured(number: int, threads: int) -> tuple[list[StoredRun], list[StoredRun]]:
    """Sessions that visit some cases twice, and those from the second on as if they did not."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [_session(Path(folder) / "run.json", threads) for _ in range(number)]
    return runs, [_after(*both) for both in itertools.pairwise(runs)]


def main() -> int:
    """Run the sessions, or read them, print the table, and give the exit status."""
    files = {"sessions": "a folder of recorded sessions, which are judged instead"}
    given = bounds.arguments(__doc__, rounds=_SESSIONS, files=files, threads=1)
    if given.sessions:
        runs, later = list[StoredRun](), _recorded(given.sessions)
    else:
        runs, later = _measured(given.rounds, given.threads)
    numbers = itertools.combinations(range(len(later)), 2)
    apart = [(later[first], later[second]) for first, second in numbers if second > first + 1]
    for run in (*runs, *later):
        known = ((record.framework, record.repeatability) for record in run.records)
        print(stated(known, run.session.revisits or {}))
    findings = _findings("an earlier session", apart)
    if runs:
        visited = _findings("twelve cases visited twice", [*itertools.combinations(runs, 2)])
        findings = [*visited, *findings]
    return bounds.conclude([*findings, *_ratios(apart)])


def _findings(title: str, sessions: Sequence[tuple[StoredRun, StoredRun]]) -> list[bounds.Finding]:
    """Findings of pairs of sessions, which know how far medians repeat in one of two ways."""
    twins = [pair for both in sessions for pair in _twins(*both)]
    if not twins:
        raise SystemExit(
            "no case was measured without others in two sessions that are not neighbours: "
            "take more sessions, or a quieter machine"
        )
    held = [_ratio(*pair) <= blur([pair], INTERVAL) for pair in twins]
    won = statistics.fmean(_has_winner(*pair) for pair in twins)
    before = statistics.fmean(_ratio(*pair) >= _CONSTANT for pair in twins)
    return [
        bounds.Finding(f"{title}: pairs of a case", f"{len(twins)}"),
        _held("90 % intervals that hold 1", held),
        bounds.at_most("twins with a winner", 100 * won, _WINNERS_AT_MOST, "%"),
        bounds.Finding("twins with a winner, from 5 % on", f"{100 * before:.1f} %"),
        *_rights([*_contests([*{id(run): run for both in sessions for run in both}.values()])]),
    ]


if __name__ == "__main__":
    sys.exit(main())
