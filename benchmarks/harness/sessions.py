"""Errors and power of ``fwbench gate``, in simulated jobs whose sessions differ.

A job has 20 cases. Times of a case scatter by 1 % between sessions, and besides either all cases of
a session are off by the same, or each by its own. One case may be slowed in the contender.

    python benchmarks/harness/sessions.py [--jobs 2000]
"""

from __future__ import annotations

import argparse
import itertools
import math
from statistics import median

import numpy as np
from numpy.typing import NDArray

from fwbench.gate.samples import SampleSet
from fwbench.gate.stored import compare
from fwbench.gate.verdicts import CHANGES, Comparison, Rules, Verdict
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import MEDIAN, MINIMUM, Measurement

_CASES = 20

#: Standard deviation of the times of each case between sessions, apart from the offsets.
_OWN = 0.01

#: Sessions of the base and of the contender.
_SESSIONS = ((2, 1), (5, 1), (10, 1), (2, 2), (5, 5), (10, 10))

_OFFSETS = (0.02, 0.03, 0.05)

_SLOWED = (0.05, 0.1, 0.2, 0.5)


def _job(
    random: np.random.Generator,
    sessions: tuple[int, int],
    offset: float,
    slowed: float,
    *,
    alike: bool,
) -> Comparison:
    """The comparison of a job, whose first case is slowed in the contender, by a share."""

    def side(number: int, slowed: float) -> SampleSet:
        offsets = offset * random.standard_normal((1 if alike else _CASES, number))
        logarithms = offsets + _OWN * random.standard_normal((_CASES, number))
        logarithms[0] += np.log1p(slowed)
        return SampleSet("", {str(i): _case(i, x) for i, x in enumerate(np.exp(logarithms))})

    return compare(side(sessions[0], 0.0), side(sessions[1], slowed), Rules())


def _case(number: int, times_s: NDArray[np.float64]) -> Measurement:
    figures = [{MINIMUM: float(time_s), MEDIAN: float(time_s)} for time_s in times_s]
    return Measurement(CaseFacts(), times_s.tolist(), nodeid=str(number), figures=figures)


def _row(sessions: tuple[int, int], offset: float, jobs: int, *, alike: bool) -> list[str]:
    random = np.random.default_rng([*sessions, int(1000 * offset), alike])
    unchanged = [_job(random, sessions, offset, 0.0, alike=alike) for _ in range(jobs)]
    alarms = sum(any(v in CHANGES for v in job.verdicts.values()) for job in unchanged)
    visible = median(j.visible or math.inf for job in unchanged for j in job.judgements)
    found = []
    for slowed in _SLOWED:
        some = [_job(random, sessions, offset, slowed, alike=alike) for _ in range(jobs // 10)]
        regressed = sum(job.verdicts["0"] is Verdict.REGRESSED for job in some)
        found.append(f"{regressed / len(some):.0%}")
    name = f"{'all cases alike' if alike else 'each by its own'}, {offset:.0%}"
    numbers = "{} against {}".format(*sessions)
    return [name, numbers, f"{alarms / jobs:.1%}", _share(visible), *found]


def _share(share: float) -> str:
    return "none" if share == math.inf else f"{share:.0%}"


def main() -> None:
    """Print the table of docs/figures.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000)
    jobs = parser.parse_args().jobs
    head = ["sessions differ by", "sessions", "jobs with a false alarm", "detectable change"]
    rows = [[*head, *(f"+{slowed:.0%} detected" for slowed in _SLOWED)]]
    rows += [["---"] * 2 + ["---:"] * (len(rows[0]) - 2)]
    for alike, offset, sessions in itertools.product((True, False), _OFFSETS, _SESSIONS):
        rows.append(_row(sessions, offset, jobs, alike=alike))
    print("\n".join(f"| {' | '.join(row)} |" for row in rows).replace("%", " %"))


if __name__ == "__main__":
    main()
