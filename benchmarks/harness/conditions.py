"""Check the rules of `fwbench.measure.condition` on noise, on trends, and on stored runs.

First made-up rounds: noise without a trend must rarely be called drifting, and a trend of 25 %
should be. Then, of each stored run that is named (several runs of one suite, on a machine that
others use more or less), how many cases moved, and what the rules make of them; and how far the
medians of contended and of other cases are above the best median of the same case in any run.

    python benchmarks/harness/conditions.py [RUN ...]

With ``--busy`` cases are measured on the machine as it is, which must be idle, and beside one, two
and sixteen processes that compute all the time. Of the cases whose median moved by more than 10 %,
95 of 100 must be marked, and on the idle machine 1 of 100 at most.

    python benchmarks/harness/conditions.py --busy
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import bounds
from bounds import Finding, conclude

from fwbench.measure import condition
from fwbench.records.measurement import Measurement
from fwbench.records.stored import load

_TRIALS = 500
_TREND = 0.25
_MOVED = 0.1

#: Noise that is called drifting, at most.
_FALSE_AT_MOST = 0.02


def _rounds(number: int, noise: float, trend: float) -> list[float]:
    return [
        (1.0 + trend * place / (number - 1)) * max(0.1, random.gauss(1.0, noise))
        for place in range(number)
    ]


def _made_up(number: int, noise: float) -> Finding:
    unchanged = [_rounds(number, noise, 0.0) for _ in range(_TRIALS)]
    moved = sum(_has_moved(rounds_s) for rounds_s in unchanged) / _TRIALS
    false = sum(map(condition.is_drifting, unchanged)) / _TRIALS
    right = sum(condition.is_drifting(_rounds(number, noise, _TREND)) for _ in unchanged) / _TRIALS
    return Finding(
        f"{number} rounds, noise of {noise:.0%}",
        f"{moved:.0%} moved, {false:.1%} drifting; {right:.0%} of those with a trend",
        f"at most {_FALSE_AT_MOST:.0%} drifting",
        false <= _FALSE_AT_MOST,
    )


def _has_moved(rounds_s: Sequence[float]) -> bool:
    return abs(condition.drift(rounds_s) or 0.0) > _MOVED


def _stored(name: str, records: Sequence[Measurement], best_s: dict[str, float]) -> list[Finding]:
    states: dict[str, list[float]] = {state: [] for state in condition.CONDITIONS}
    for record in records:
        facts, rounds_s = record.facts, record.stats.data or record.values_s
        state = condition.of_rounds(rounds_s, facts)
        states[state].append(statistics.median(rounds_s) / best_s[record.nodeid])
    moved = sum(_has_moved(record.stats.data or ()) for record in records if record.stats.data)
    counts = ", ".join(f"{len(ratios)} {state}" for state, ratios in states.items())
    above = [
        Finding(f"  {state}: medians against the best", f"middle {_deciles(ratios)}")
        for state, ratios in states.items()
        if len(ratios) > 1
    ]
    return [Finding(name, f"{len(records)} cases, {moved} moved by > 10 %: {counts}"), *above]


def _deciles(ratios: Sequence[float]) -> str:
    deciles = statistics.quantiles(ratios, n=10, method="inclusive")
    return f"{deciles[4]:.2f}x, nine in ten at most {deciles[8]:.2f}x"


#: Cases of one thread and of two.
_CASES = ("--fw=numpy,torch,mxnet,tensorflow", "--fw-execution=eager")
_SELECT = "[add- or [exp- or [softmax- or [sum_rows- or [gemm- or [sort-"

_BUSY = (1, 2, 16)

#: Medians of a case before and after differ by less on an idle machine.
_MARKED_AT_LEAST = 0.95
_FALSELY_AT_MOST = 0.01


def _measured(busy: int) -> dict[str, dict[str, Any]]:
    """Records by node id, measured beside some processes that compute all the time."""
    command = [sys.executable, "-c", "while True: pass"]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ended:
        for _ in range(busy):
            ended.callback(subprocess.Popen(command).kill)
        return {
            f"{threads} {record['fullname']}": record
            for threads in (1, 2)
            for record in bounds.records(
                Path(folder) / f"{threads}.json",
                "benchmarks",
                *(f"--fw-threads={threads}", *_CASES, "-k", _SELECT),
            )
        }


def _beside_others() -> Iterator[Finding]:
    idle, again = _measured(0), _measured(0)
    marked = [is_marked(record) for session in (idle, again) for record in session.values()]
    yield Finding(
        "idle machine",
        f"{sum(marked)} of {len(marked)} marked",
        f"at most {_FALSELY_AT_MOST:.0%}",
        sum(marked) <= _FALSELY_AT_MOST * len(marked),
    )
    moved = []
    for busy in _BUSY:
        part = [*_moved(idle, _measured(busy))]
        moved += part
        yield Finding(f"{busy} busy loops", f"{sum(part)} of {len(part)} that moved marked")
    yield Finding(
        "beside busy loops",
        f"{sum(moved)} of {len(moved)} that moved marked",
        f"at least {_MARKED_AT_LEAST:.0%}",
        sum(moved) >= _MARKED_AT_LEAST * len(moved),
    )


def _moved(idle: Mapping[str, Any], busy: Mapping[str, Any]) -> Iterator[bool]:
    """Marks of the cases that became slower: true for each that has one."""
    for name, record in busy.items():
        if record["stats"]["median"] > (1 + _MOVED) * idle[name]["stats"]["median"]:
            yield is_marked(record)


def is_marked(record: Mapping[str, Any]) -> bool:
    """True if a record says that its case was contended."""
    return bool(record["extra_info"]["fwbench"]["condition"] == condition.CONTENDED)


def main() -> int:
    """Draw the rounds, read the runs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="stored runs of one suite")
    parser.add_argument("--busy", action="store_true", help="measure beside busy processes")
    options = parser.parse_args()
    if options.busy:
        return conclude([*_beside_others()])
    random.seed(1)
    runs = {path: load(Path(path)).records for path in options.runs}
    best_s: dict[str, float] = {}
    for record in (record for records in runs.values() for record in records if record.facts):
        median_s = statistics.median(record.stats.data or record.values_s)
        best_s[record.nodeid] = min(median_s, best_s.get(record.nodeid, median_s))
    made_up = [_made_up(number, noise) for noise in (0.02, 0.1, 0.3) for number in (10, 30, 200)]
    stored = [
        finding
        for path, records in runs.items()
        for finding in _stored(path, [r for r in records if r.facts], best_s)
    ]
    return conclude([*made_up, *stored])


if __name__ == "__main__":
    sys.exit(main())
