"""A third of the time for the same spread between launches: rounds that end when they are enough.

This file is a script and a test file in one. The script measures forty cases, ten a framework,
in fresh processes, in turn: for 0.4 seconds each (`--fw-precision=off`), and until the median is
precise or the time is over that the quick grid gives a case (the default). Of each case it compares
the medians of all launches.

- The time that cases take apart from the start of their processes (rounds, and all that comes
  before and after them) must be at most half; that of their rounds at most a third.
- The spread between launches, which is the standard deviation of the logarithms of the medians, may
  be at most a fifth larger, as the geometric mean over all cases. A machine that drifts moves both
  alike, because they take turns.

On a busy machine rounds are not precise, and the time of both is the same.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bounds
import pytest

from fwbench.cases.case import Case
from fwbench.workloads import add, exp, gemm, sigmoid, transpose

_ROUNDS_AT_MOST = 1 / 3
_MEASURING_AT_MOST = 1 / 2
_SPREAD_AT_MOST = 1.2

_LAUNCHES = 8
_LAUNCHES_AT_LEAST = 2

#: The ways to measure, by what they are called, with the options of each.
_WAYS = {
    # As the quick grid was measured before there was a precision.
    "fixed time": ("--fw-precision=off", "--benchmark-max-time=0.4"),
    "precision": (),
}

_FRAMEWORKS = "mxnet,numpy,tensorflow,torch"


@pytest.mark.fwbench(add, exp, sigmoid, sizes=(1_000, 1_000_000), devices="cpu", executions="eager")
def test_elementwise(case: Case) -> None:
    _measure(case)


@pytest.mark.fwbench(gemm, transpose, sizes=(64, 512), devices="cpu", executions="eager")
def test_matrices(case: Case) -> None:
    _measure(case)


def _measure(case: Case) -> None:
    start_s = time.perf_counter()
    case.measure()
    case.benchmark.extra_info["measuring_s"] = time.perf_counter() - start_s


@dataclass
class _Way:
    """Results of one way to measure.

    Attributes:
        sessions_s: the time of each session.
        measuring_s: of it, the time in which cases were measured.
        rounds_s: of that, the time of rounds.
        medians_s: of each case, the median of every launch.
        stopped: how often rounds ended for which reason.
    """

    sessions_s: list[float] = field(default_factory=list)
    measuring_s: list[float] = field(default_factory=list)
    rounds_s: list[float] = field(default_factory=list)
    medians_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    stopped: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def launch(self, path: Path, options: Sequence[str]) -> None:
        """Measure all cases in fresh processes."""
        start_s = time.perf_counter()
        records = bounds.records(path, __file__, f"--fw={_FRAMEWORKS}", *options)
        self.sessions_s.append(time.perf_counter() - start_s)
        self.measuring_s.append(sum(entry["extra_info"]["measuring_s"] for entry in records))
        self.rounds_s.append(sum(map(_rounds_s, records)))
        for record in records:
            self.medians_s[record["name"]].append(record["stats"]["median"])
            self.stopped[record["extra_info"]["fwbench"].get("stopped", "fixed")] += 1

    def spreads(self) -> dict[str, float]:
        """The spread of the launches of each case."""
        return {
            name: statistics.stdev(map(math.log, medians_s))
            for name, medians_s in self.medians_s.items()
        }

    def findings(self, name: str) -> list[bounds.Finding]:
        """Findings on this way alone."""
        ended = ", ".join(f"{count} {why}" for why, count in sorted(self.stopped.items()))
        deciles = statistics.quantiles(self.spreads().values(), n=10, method="inclusive")
        typical = f"{deciles[4]:.2%}, nine in ten at most {deciles[8]:.2%}"
        return [
            bounds.Finding(f"{name}: session", f"{statistics.median(self.sessions_s):.1f} s"),
            bounds.Finding(f"{name}: measuring", f"{statistics.median(self.measuring_s):.1f} s"),
            bounds.Finding(f"{name}: rounds", f"{statistics.median(self.rounds_s):.1f} s"),
            bounds.Finding(f"{name}: rounds ended", ended),
            bounds.Finding(f"{name}: spread between launches", typical),
        ]


def _rounds_s(record: Mapping[str, Any]) -> float:
    stats = record["stats"]
    return float(stats["total"] * stats["iterations"])


def _ratio(what: str, ways: Sequence[Sequence[float]], bound: float) -> bounds.Finding:
    """The median of the second over that of the first."""
    fixed, precise = map(statistics.median, ways)
    return bounds.at_most(f"{what}: precision / fixed time", precise / fixed, bound, "x")


def _spread(fixed: Mapping[str, float], precise: Mapping[str, float]) -> bounds.Finding:
    ratios = [precise[name] / fixed[name] for name in fixed]
    wider = sum(ratio > 1 for ratio in ratios)
    mean = statistics.geometric_mean(ratios)
    what = f"spread: precision / fixed time ({wider} of {len(ratios)} cases wider)"
    return bounds.at_most(what, mean, _SPREAD_AT_MOST, "x")


def main() -> int:
    """Measure in turn, print the table, and give the exit status."""
    launches = bounds.arguments(__doc__, rounds=_LAUNCHES).rounds
    if launches < _LAUNCHES_AT_LEAST:
        raise SystemExit(f"--rounds {launches}: a spread takes at least {_LAUNCHES_AT_LEAST}")
    ways = {name: _Way() for name in _WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(launches):
            for name, options in _WAYS.items():
                ways[name].launch(Path(folder) / "run.json", options)
    fixed, precise = ways.values()
    return bounds.conclude(
        [
            *(finding for name, way in ways.items() for finding in way.findings(name)),
            _ratio("rounds", (fixed.rounds_s, precise.rounds_s), _ROUNDS_AT_MOST),
            _ratio("measuring", (fixed.measuring_s, precise.measuring_s), _MEASURING_AT_MOST),
            _spread(fixed.spreads(), precise.spreads()),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
