"""Each framework is called as its users call it, and the other ways take so much.

This file is a script and a test file in one, as accuracy.py is. The other public ways of frameworks
to compute an operation are declared in ``fwbench_extras.idioms``. Here the way that is called and
its alternatives are verified, and take turns of two milliseconds within one process, with one
thread, at the quick sizes, in both directions and every execution. Frameworks are recorded one
after the other: after a failure, ``--frameworks`` names those that are left::

    python benchmarks/harness/idioms.py --select "mxnet and tanh"    prints
    make idioms                                                      writes docs/idioms.md, too

``idioms.csv`` holds what was measured last. A way that takes more than 1.15 times as long as an
alternative needs a reason (``accepted``); tests/docs compare the file with the declarations.
"""

from __future__ import annotations

import csv
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import bounds
import pytest

from fwbench.cases.case import Case, bind
from fwbench.cases.work import Work
from fwbench.measure import empty_stack
from fwbench.workloads import OPERATIONS
from fwbench.workloads.operation import Operation
from fwbench_extras.idioms import idioms_of
from fwbench_extras.idioms.table import SLOWER_FROM, Idiom, another_way

RECORDED = Path(__file__).with_suffix(".csv")

#: Columns of the file: a row for each alternative in each cell of the grid. ``ratio`` is the time
#: of the way that is called over the alternative's, ``refused`` why there is none.
COLUMNS = (
    *("framework", "operation", "size", "direction", "execution"),
    *("called", "called_us", "alternative", "ratio", "refused"),
)

_IDIOMS = "idioms"

#: Every way is bound so often, in memory of its own: where small arrays lie can double a time.
_BINDS = 3
_ROUNDS = 7
_VISIT_S = 2e-3

#: Where a turn of all takes longer, as calls compile something (gradients of JAX's loops, eagerly),
#: a bind takes one.
_LONG_TURN_S = 0.5

_FRAMEWORKS = "numpy,onnxruntime,torch,tensorflow,mxnet,jax"


@pytest.mark.fwbench(*OPERATIONS)
def test_ways(case: Case) -> None:
    idiom = idioms_of(case.framework.name).get(case.cell.workload.name)
    if idiom is None:
        pytest.skip("no alternatives")
    case.measure()
    with case.framework.scope(case.cell.device, case.cell.dtype):
        case.benchmark.extra_info[_IDIOMS] = _compared(case, idiom)


def _compared(case: Case, idiom: Idiom) -> list[dict[str, Any]]:
    """The columns of each alternative that only a measurement gives: medians of several binds."""
    rows: dict[str, dict[str, Any]] = {
        name: {"called": idiom.called, "alternative": name} for name in idiom.alternatives
    }
    called = [_verified(bind(case.cell, case.framework)) for _ in range(_BINDS)]
    others: dict[str, list[Work]] = {}
    for name, entry in idiom.alternatives.items():
        try:
            others[name] = [_verified(_bound(case, entry)) for _ in range(_BINDS)]
        except Exception as error:  # noqa: BLE001 (a framework may raise anything)
            rows[name]["refused"] = (str(error).splitlines() or [type(error).__name__])[0][:200]
    taken_s = [_in_turns(case, works) for works in zip(called, *others.values(), strict=True)]
    for place, name in enumerate(others, 1):
        ratios = [statistics.median(s[0] / s[place] for s in visits) for visits in taken_s]
        called_s = statistics.median(s[0] for visits in taken_s for s in visits)
        rows[name] |= {
            "called_us": round(1e6 * called_s, 3),
            "ratio": float(f"{statistics.median(ratios):.4g}"),
        }
    return [*rows.values()]


def _verified(work: Work) -> Work:
    work.verify(work.run())
    return work


def _bound(case: Case, entry: Any) -> Work:
    """The work of the case by another way."""
    with another_way(case.framework, cast("Operation", case.cell.workload), entry):
        return bind(case.cell, case.framework)


def _in_turns(case: Case, works: Sequence[Work]) -> list[list[float]]:
    """Seconds a call of each, in rounds of a visit of each in random order."""
    wait = case.framework.waiter(case.cell.device) or (lambda: None)
    visit: Callable[..., float] = _visit
    if case.framework.reads_stack:
        visit = lambda *given: empty_stack.call(lambda: _visit(*given))  # noqa: E731 (one name)
    call_s = [visit(work.run, wait, 1) for work in works]
    if sum(call_s) > _LONG_TURN_S:
        return [call_s]
    calls = [max(1, round(_VISIT_S / taken_s)) for taken_s in call_s]
    rounds = []
    for _ in range(_ROUNDS):
        taken_s = [0.0] * len(works)
        for place in random.sample(range(len(works)), len(works)):
            taken_s[place] = visit(works[place].run, wait, calls[place])
        rounds.append(taken_s)
    return rounds


def _visit(run: Callable[[], Any], wait: Callable[[], Any], calls: int) -> float:
    """Seconds a call, after one that is not counted."""
    run()
    wait()
    start_s = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return (time.perf_counter() - start_s) / calls


def _measured(framework: str, select: str) -> Iterator[list[dict[str, Any]]]:
    """The rows of the file, those of an operation as soon as it is measured."""
    options = [f"--fw={framework}", "--fw-family=all", "--fw-direction=forward,backward"]
    options += ["--fw-threads=1", "--benchmark-max-time=0.02", *(["-k", select] if select else [])]
    with tempfile.TemporaryDirectory() as folder:
        records = bounds.stream(Path(folder), __file__, *options)
        for _, group in groupby(records, lambda record: _facts(record)["workload"]):
            yield [row for record in group for row in _rows(record)]


def _facts(record: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = record["extra_info"]["fwbench"]
    return facts


def _rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    facts = _facts(record)
    cell = {
        "framework": facts["framework"],
        "operation": facts["workload"],
        "size": facts["shape"] or facts["size"],
        "direction": facts["direction"],
        "execution": facts["execution"],
    }
    return [{**cell, **row} for row in record["extra_info"][_IDIOMS]]


def _finding(row: dict[str, Any]) -> bounds.Finding:
    cell = " ".join(str(row[name]) for name in COLUMNS[:5])
    what = f"{cell}: {row['called']} against {row['alternative']}"
    if "refused" in row:
        return bounds.Finding(what, row["refused"])
    return bounds.Finding(what, f"{row['ratio']:.2f}x", f"{SLOWER_FROM:g}x, or a reason")


def _record(rows: list[dict[str, Any]]) -> None:
    """Put rows in the place of those of the same frameworks and operations."""
    new = {(row["framework"], row["operation"]) for row in rows}
    kept = []
    if RECORDED.exists():
        with RECORDED.open(newline="", encoding="utf-8") as file:
            kept = [
                row
                for row in csv.DictReader(file)
                if (row["framework"], row["operation"]) not in new
            ]
    every = sorted([*kept, *rows], key=lambda row: [str(row[name]) for name in COLUMNS[:5]])
    with RECORDED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)


def main() -> int:
    """Measure, print and record."""
    given = bounds.arguments(
        __doc__,
        rounds=1,
        texts={
            "select": "cases to measure, as -k takes them",
            "frameworks": f"names or environments, with commas between (default: {_FRAMEWORKS})",
        },
        record=0,
    )
    rows = []
    for framework in (given.frameworks or _FRAMEWORKS).split(","):
        start_s = time.perf_counter()
        measured = []
        for operation in _measured(framework, given.select):
            if given.record:  # before the next one, which may fail
                _record(operation)
            measured += operation
        taken_s = time.perf_counter() - start_s
        print(f"{framework}: {len(measured)} rows in {taken_s:.0f} s", file=sys.stderr)
        rows += measured
    return bounds.conclude([_finding(row) for row in rows])


if __name__ == "__main__":
    sys.exit(main())
