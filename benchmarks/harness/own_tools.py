"""fwbench reports what the frameworks' own benchmark tools report.

This file is a script and a test file in one, as accuracy.py is. Ten operations, each at the middle
one of its quick sizes, are measured by fwbench and beside it by the tool that the framework's
developers use, on the same function and the same arrays:

- PyTorch: ``torch.utils.benchmark.Timer.blocked_autorange``
  (https://docs.pytorch.org/docs/stable/benchmark_utils.html), with as many threads;
- MXNet: as opperf's Python profiler calls (``benchmark/opperf/utils/profiler_utils.py``,
  ``python_profile``): ``perf_counter`` around one call and ``waitall``;
- TensorFlow, which has no such tool for operations: a bare loop of the ``tf.function``.

The tool measures before and after fwbench, each time about as long as fwbench does: a machine that
drifts moves both alike. The figure is the median, over all pairs of a few sessions, of the median
that fwbench reported over the mean of the tool's two; it must be within 5 % of 1. In brackets the
quartiles of the ratios.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import bounds
import pairs
import pytest

from fwbench.cases.case import Case
from fwbench.workloads import (
    add,
    batch_gemm,
    conv2d_3x3,
    exp,
    gather_rows,
    layer_norm,
    max_pool2d,
    softmax,
    sort,
    sum_rows,
)
from fwbench.workloads.operation import Operation

_WITHIN = 0.05

_OPERATIONS: tuple[Operation, ...] = (
    *(add, batch_gemm, conv2d_3x3, exp, gather_rows),
    *(layer_norm, max_pool2d, softmax, sort, sum_rows),
)

#: How long a tool measures each time; fwbench ends when a median is precise, or at the quick grid's
#: --benchmark-max-time.
_TOOL_S = 0.1

#: Calls that opperf makes before it measures (its default), and rounds of a bare loop.
_WARMUP_CALLS = 25
_ROUNDS = 20


def _timer_s(run: partial[Any], case: Case) -> float:
    from torch.utils.benchmark import Timer

    arrays = {f"a{i}": array for i, array in enumerate(run.args)}
    passed = [*arrays, *(f"{name}={name}" for name in run.keywords)]
    timer = Timer(
        f"f({', '.join(passed)})",
        globals={"f": run.func, **arrays, **run.keywords},
        num_threads=case.framework.threads() or 1,
    )
    return float(timer.blocked_autorange(min_run_time=_TOOL_S).median)


def _opperf_s(run: partial[Any], case: Case) -> float:
    wait = case.framework.namespace.waitall
    for _ in range(_WARMUP_CALLS):
        run()
    wait()
    took_s = []
    end_s = time.perf_counter() + _TOOL_S
    while time.perf_counter() < end_s:
        start_s = time.perf_counter()
        run()
        wait()
        took_s.append(time.perf_counter() - start_s)
    return statistics.median(took_s)


def _loop_s(run: partial[Any], _case: Case) -> float:
    for _ in range(_WARMUP_CALLS):
        run()
    start_s = time.perf_counter()
    run()
    calls = max(1, round(_TOOL_S / _ROUNDS / (time.perf_counter() - start_s)))
    took_s = []
    for _ in range(_ROUNDS):
        start_s = time.perf_counter()
        for _ in range(calls):
            run()
        took_s.append((time.perf_counter() - start_s) / calls)
    return statistics.median(took_s)


_TOOLS: dict[str, Callable[[partial[Any], Case], float]] = {
    "torch": _timer_s,
    "mxnet": _opperf_s,
    "tensorflow": _loop_s,
}


def _tool_s(case: Case) -> float:
    run = case.bind().run
    assert isinstance(run, partial)
    return _TOOLS[case.framework.name](run, case)


_sizes = {of.name: of.by_preset.quick[1] for of in _OPERATIONS}
_in_turns = pytest.mark.usefixtures("turn")


@pytest.fixture(params=range(12))
def turn(request: pytest.FixtureRequest) -> int:
    """Each case is measured so many times in a session."""
    number: int = request.param
    return number


@_in_turns
@pytest.mark.fwbench(*_OPERATIONS, executions="eager", frameworks=("mxnet", "torch"))
def test_eager(case: Case) -> None:
    _measure(case)


@_in_turns
@pytest.mark.fwbench(*_OPERATIONS, executions="graph", frameworks="tensorflow")
def test_graph(case: Case) -> None:
    _measure(case)


def _measure(case: Case) -> None:
    if case.cell.size != _sizes[case.cell.workload.name]:
        pytest.skip("the middle size alone")
    pairs.enclose(case, _tool_s)


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=3)
    found = pairs.measured(__file__, given.rounds)
    return bounds.conclude([pairs.ratio(*item, _WITHIN) for item in sorted(found.items())])


if __name__ == "__main__":
    sys.exit(main())
