"""Frameworks do not disturb each other, and all of them use the threads they are given.

This file is a script and a test file in one. The script runs sessions of one 1024 x 1024 product:

- PyTorch alone, and after MXNet in the same session, in turn. The ratio of the medians must be
  within noise of 1: within the larger of 5 % and the spread of PyTorch alone. (In one process
  MXNet would double PyTorch's time.)
- MXNet with one thread and with two, in turn. With two it must be at least 1.4 times as fast, and
  keep at least 1.5 CPUs busy: its CPU time over the time on the wall, of calls made after the
  measurement. (By default MXNet takes one thread.)

Where only one CPU may be used there is nothing to measure.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import bounds
import pytest

from fwbench.cases.case import Case, bind
from fwbench.machine import usable_cpus
from fwbench.workloads import gemm

_NOISE = 0.05
_SPEEDUP = 1.4
_BUSY_CPUS = 1.5
_BUSY_FOR_S = 1.0


@pytest.mark.fwbench(gemm, sizes=(1_024,), devices="cpu", executions="eager")
def test_gemm(case: Case) -> None:
    case.measure()
    case.benchmark.extra_info["busy_cpus"] = _busy_cpus(case)


def _busy_cpus(case: Case) -> float:
    run = bind(case.cell, case.framework).run
    wait: Callable[[], Any] = case.framework.waiter(case.cell.device) or (lambda: None)
    wait()
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    while time.perf_counter() < wall_s + _BUSY_FOR_S:
        run()
        wait()
    return (time.process_time() - cpu_s) / (time.perf_counter() - wall_s)


def _record(path: Path, framework: str, *options: str) -> dict[str, Any]:
    return next(
        record
        for record in bounds.records(path, __file__, *options)
        if record["params"]["framework"] == framework
    )


def _completion_s(path: Path, framework: str, *options: str) -> float:
    return float(_record(path, framework, *options)["stats"]["median"])


def _busy(path: Path, *options: str) -> float:
    return float(_record(path, "mxnet", *options)["extra_info"]["busy_cpus"])


def _disturbance(rounds: int, path: Path) -> list[bounds.Finding]:
    measure = partial(_completion_s, path, "torch")
    times_s = bounds.in_turn(
        rounds,
        {
            "torch alone": partial(measure, "--fw=torch"),
            "torch after mxnet": partial(measure, "--fw=mxnet,torch"),
        },
    )
    took = bounds.medians(times_s)
    ratio = took["torch after mxnet"] / took["torch alone"]
    noise = max(_NOISE, bounds.spread(times_s["torch alone"]))
    return [
        *_times(times_s),
        bounds.Finding(
            "after / alone", f"{ratio:.3f}", f"within {noise:.0%} of 1", abs(ratio - 1) <= noise
        ),
    ]


def _threads(rounds: int, path: Path) -> list[bounds.Finding]:
    measure = partial(_completion_s, path, "mxnet", "--fw=mxnet")
    times_s = bounds.in_turn(
        rounds, {f"mxnet, {n} thread(s)": partial(measure, f"--fw-threads={n}") for n in (1, 2)}
    )
    one_thread_s, two_threads_s = (statistics.median(figures) for figures in times_s.values())
    busy = _busy(path, "--fw=mxnet", "--fw-threads=2")
    return [
        *_times(times_s),
        bounds.Finding(
            "one / two",
            f"{one_thread_s / two_threads_s:.2f} x",
            f"at least {_SPEEDUP} x",
            one_thread_s / two_threads_s >= _SPEEDUP,
        ),
        bounds.Finding(
            "mxnet with two threads keeps busy",
            f"{busy:.2f} CPUs",
            f"at least {_BUSY_CPUS} CPUs",
            busy >= _BUSY_CPUS,
        ),
    ]


def _times(times_s: dict[str, list[float]]) -> list[bounds.Finding]:
    return [
        bounds.Finding(
            name, f"{1e3 * statistics.median(figures):.2f} ms, spread {bounds.spread(figures):.0%}"
        )
        for name, figures in times_s.items()
    ]


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=5)
    if usable_cpus() < 2:
        print("This process may use one CPU: this machine cannot tell.")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        return bounds.conclude([*_disturbance(given.rounds, path), *_threads(given.rounds, path)])


if __name__ == "__main__":
    sys.exit(main())
