"""fwbench reports what the frameworks' own benchmark tools report.

This file is a script and a test file in one, as accuracy.py is. Ten operations, each at the middle
one of its quick sizes, are measured by fwbench and by the tool that the framework's
developers use, on the same function and the same arrays:

- PyTorch: ``torch.utils.benchmark.Timer``, in blocks as its ``blocked_autorange`` makes them
  (https://docs.pytorch.org/docs/stable/benchmark_utils.html), with as many threads;
- MXNet: as opperf's Python profiler calls (``benchmark/opperf/utils/profiler_utils.py``,
  ``python_profile``): ``perf_counter`` around one call and ``waitall``;
- TensorFlow, which has no such tool for operations: a bare loop of the ``tf.function``.

After each block of twenty of fwbench's rounds (or two milliseconds) the tool has as many. Side by
side, a tenth of a second each, they differed by up to 15 % for MXNet's small operations, in either
direction: its threads take one or three times as long to wake up, and stay with that for a while.
The figure is the median, over all cases of a few sessions, of the median that fwbench reported over
that of the tool's; it must be within 5 % of 1. In brackets the quartiles of the ratios.
"""

from __future__ import annotations

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


def _timer(run: partial[Any], case: Case) -> pairs.Block:
    from torch.utils.benchmark import Timer

    arrays = {f"a{i}": array for i, array in enumerate(run.args)}
    passed = [*arrays, *(f"{name}={name}" for name in run.keywords)]
    timer = Timer(
        f"f({', '.join(passed)})",
        globals={"f": run.func, **arrays, **run.keywords},
        num_threads=case.framework.threads() or 1,
    )
    return lambda rounds, calls: [timer.timeit(rounds * calls).median]


def _opperf(run: partial[Any], case: Case) -> pairs.Block:
    wait = case.framework.namespace.waitall

    def measure(rounds: int, _calls: int) -> list[float]:
        taken_s = []
        for _ in range(rounds):
            start_s = time.perf_counter()
            run()
            wait()
            taken_s.append(time.perf_counter() - start_s)
        return taken_s

    return measure


def _loop(run: partial[Any], _case: Case) -> pairs.Block:
    def measure(rounds: int, calls: int) -> list[float]:
        taken_s = []
        for _ in range(rounds):
            start_s = time.perf_counter()
            for _ in range(calls):
                run()
            taken_s.append((time.perf_counter() - start_s) / calls)
        return taken_s

    return measure


_TOOLS: dict[str, Callable[[partial[Any], Case], pairs.Block]] = {
    "torch": _timer,
    "mxnet": _opperf,
    "tensorflow": _loop,
}

_sizes = {operation.name: operation.by_preset.quick[1] for operation in _OPERATIONS}
_in_turns = pytest.mark.usefixtures("turn")


@pytest.fixture(params=range(12))
def turn(request: pytest.FixtureRequest) -> int:
    """Measures each case several times in a session."""
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
    run = case.bind().run
    assert isinstance(run, partial)
    run()  # which compiles it
    pairs.interleave(case, _TOOLS[case.framework.name](run, case))


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=3)
    measured = pairs.measured(__file__, given.rounds)
    return bounds.conclude([pairs.ratio(*item, _WITHIN) for item in sorted(measured.items())])


if __name__ == "__main__":
    sys.exit(main())
