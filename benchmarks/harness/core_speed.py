"""Medians of rounds at full speed repeat better than those of all rounds.

This file is a script and a test file in one. Each session measures six cases of a framework with
one thread, in a fresh process, by turns free and on one CPU (``pin=on``). Beside what fwbench
measures, each case is called for half a second more, with the loop that tells the speed of CPUs
after each millisecond. The median of the first 40 stretches is compared with that of the first 40
at full speed: the table has how far either scatters over the sessions, as the standard deviation of
its logarithm, in per cent, of the middle case of each framework.

On a machine whose CPUs nobody else slows down there is no difference. The first row says for how
much of the time they were slow.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import bounds
import pytest

from fwbench.cases.case import Case, bind
from fwbench.measure import core_speed
from fwbench.workloads import add, exp, gemm

#: Each has a session of its own: those of a row would make their stretches at once.
_FRAMEWORKS = ("mxnet", "numpy", "tensorflow", "torch")
_OPTIONS = ("--fw-threads=1", "--fw-revisit=0")
_PINS = {"free": (), "on one CPU": ("--fw-toggle=pin=on",)}

_SESSIONS = 12
_SECONDS, _EACH_S, _TAKEN = 0.5, 1e-3, 40
_STRETCHES = "stretches"

#: Whether each stretch began and ended at full speed, and the seconds of a call in it.
Stretches = Sequence[tuple[bool, float]]


@pytest.mark.fwbench(add, exp, sizes=(1_000, 1_000_000), devices="cpu", executions="eager")
def test_elementwise(case: Case) -> None:
    case.measure()
    case.benchmark.extra_info[_STRETCHES] = _stretches(case)


@pytest.mark.fwbench(gemm, sizes=(64, 512), devices="cpu", executions="eager")
def test_gemm(case: Case) -> None:
    case.measure()
    case.benchmark.extra_info[_STRETCHES] = _stretches(case)


def _stretches(case: Case) -> Stretches:
    """Stretches of calls, of a millisecond or of one call each."""
    wait = case.framework.waiter("cpu")
    cpus = core_speed.cpus_of_process(is_parallel=wait is not None)
    found, was_fast = [], True
    with case.framework.scope("cpu", case.cell.dtype), cpus.reached():
        run = bind(case.cell, case.framework).run
        ends_s = time.perf_counter() + _SECONDS
        while (start_s := time.perf_counter()) < ends_s:
            calls, took_s = 0, 0.0
            while took_s < _EACH_S:
                run()
                if wait is not None:
                    wait()
                calls += 1
                took_s = time.perf_counter() - start_s
            is_fast = cpus.are_fast()
            found.append((was_fast and is_fast, took_s / calls))
            was_fast = is_fast
    return found


def _scatter(sessions: Sequence[Stretches], *, at_full_speed: bool) -> float:
    """The standard deviation, in per cent, of the logarithm of a case's median."""
    chosen = [
        [took_s for is_fast, took_s in stretches if is_fast or not at_full_speed][:_TAKEN]
        for stretches in sessions
    ]
    return 100 * statistics.stdev(math.log(statistics.median(each)) for each in chosen if each)


def _finding(what: str, cases: Mapping[str, Sequence[Stretches]]) -> bounds.Finding:
    every, fast = (
        statistics.median(_scatter(case, at_full_speed=only) for case in cases.values())
        for only in (False, True)
    )
    return bounds.Finding(what, f"{every:.1f} %, at full speed {fast:.1f} %")


def main() -> int:
    """Run the sessions, print the table, and give the exit status."""
    sessions = bounds.arguments(__doc__, rounds=_SESSIONS).rounds
    known: dict[str, dict[str, list[Stretches]]] = defaultdict(lambda: defaultdict(list))
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        for _, how, name in itertools.product(range(sessions), _PINS, _FRAMEWORKS):
            options = f"--fw={name}", *_OPTIONS, *_PINS[how]
            for record in bounds.records(path, __file__, *options):
                facts, stretches = record["extra_info"]["fwbench"], record["extra_info"][_STRETCHES]
                case = f"{facts['workload']} {facts['size']}"
                known[f"{facts['framework']}, {how}"][case].append(stretches)
                slow += [not is_fast for is_fast, _ in stretches]
    share = bounds.Finding("time at less than full speed", f"{100 * statistics.fmean(slow):.0f} %")
    return bounds.conclude([share, *(_finding(*item) for item in sorted(known.items()))])


if __name__ == "__main__":
    sys.exit(main())
