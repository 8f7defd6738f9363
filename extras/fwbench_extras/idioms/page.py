"""Idioms of the frameworks, with what their alternatives took when they were last measured."""

from __future__ import annotations

import csv
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fwbench.frameworks.declared import manifests, stubbed
from fwbench_extras.idioms import idioms_of
from fwbench_extras.idioms.table import SLOWER_FROM, Idiom

#: Written by ``make idioms``.
RECORDED = Path(__file__).parents[3] / "benchmarks" / "harness" / "idioms.csv"

#: Framework, operation, name of the alternative.
Way = tuple[str, str, str]


@dataclass(frozen=True)
class Measured:
    """The way that is called against one alternative.

    Attributes:
        called: its name when it was measured.
        ratios: by size, the smallest first: the time of the way that is called over that of the
            alternative; geometric mean of all directions and executions.
        worst: the largest such mean of the directions of one size and execution; 0 without any.
        execution: that one.
        refused: why it could not be measured in a cell; empty where it could in all of them.
    """

    called: str
    ratios: Mapping[str, float]
    worst: float
    execution: str
    refused: str


def declared() -> dict[tuple[str, str], Idiom]:
    """The idioms of fwbench's frameworks, installed or not, by framework and operation."""
    names = [*manifests()]
    with stubbed(names):
        return {
            (name, operation): idiom
            for name in names
            for operation, idiom in idioms_of(name).items()
        }


def measured() -> dict[Way, Measured]:
    """The ways of the file, in its order."""
    rows = defaultdict(list)
    with RECORDED.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["framework"], row["operation"], row["alternative"]].append(row)
    return {way: _measured(cells) for way, cells in rows.items()}


def _measured(cells: Iterable[Mapping[str, str]]) -> Measured:
    cells = list(cells)
    ratios, by_execution = defaultdict(list), defaultdict(list)
    for cell in cells:
        if cell["ratio"]:
            ratios[cell["size"]].append(float(cell["ratio"]))
            by_execution[cell["execution"], cell["size"]].append(float(cell["ratio"]))
    (called,) = {cell["called"] for cell in cells}
    refused = dict.fromkeys(cell["refused"] for cell in cells if cell["refused"])
    means = {size: statistics.geometric_mean(ratios[size]) for size in sorted(ratios, key=_number)}
    worst, execution = max(
        ((statistics.geometric_mean(every), name) for (name, _), every in by_execution.items()),
        default=(0.0, ""),
    )
    return Measured(called, means, worst, execution, "; ".join(refused))


def _number(size: str) -> float:
    """The order of sizes: that of numbers, or of the product of those in a shape."""
    digits = "".join(character if character.isdigit() else " " for character in size)
    return math.prod(map(float, digits.split()))


def unexplained() -> list[str]:
    """Ways that are called although an alternative is clearly faster, without a reason."""
    idioms = declared()
    return [
        f"{framework} {operation}: {found.called} takes {found.worst:.2f} times as long as {other} "
        f"in {found.execution}"
        for (framework, operation, other), found in measured().items()
        if found.worst > SLOWER_FROM and not idioms[framework, operation].accepted
    ]


_PAGE = """# Idioms: how each framework is called

<!-- Written by `python -m fwbench_extras.pages idioms > docs/idioms.md` from the modules of
`extras/fwbench_extras/idioms` and `benchmarks/harness/idioms.csv`; do not edit. -->

The way in which fwbench calls each operation that a framework can compute in several ways, the
reason, and what the other ways take. A comparison of frameworks is a comparison of such choices.

- **The rule.** An operation is called as the framework's own layers, documentation or benchmark
  call it. Where users have a choice, the fastest way that gives the same result is called. A way
  that takes more than {slower} times as long as an alternative has a reason in the last column; CI
  fails otherwise.
- **What counts as the operation.** One rule for all frameworks: the public call that computes the
  definition of arrays that are there already. Nothing that a layer adds belongs to it, such as
  making or holding weights. How many operators or kernels the call runs is the framework's affair:
  Keras's optimizers, in Python, count as MXNet's operators do. An update is one step of the
  framework's own optimizer on one array of weights; updates of all arrays of a model are part of
  training steps, where implementations for many arrays show.
- **Composed operations.** Where a framework has no such call, or one that is slower or wrong,
  fwbench composes it of others, as the framework's users would: function by function in `eager`, as
  a whole in executions that compile. Views, and copies of them, do not count.
  [Operations](operations.md) marks what is composed by *+*, and records say `composed`: its times
  tell what the framework offers, and not how fast a kernel for it would be.
- **The figures.** The time of the way that is called over that of the alternative, at the smallest
  and at the largest quick size: below 1 the called way is faster. All ways took turns of
  two milliseconds in one process, with one thread, and each was bound three times; geometric means
  of both directions and all executions. The largest figure of a single execution, at any size, is
  what needs a reason from {slower} on. `make idioms` measures them again, and
  `python benchmarks/harness/idioms.py --select "mxnet and tanh"` some of them. An alternative
  without figures cannot be measured: it fails the verification, or has no gradient.
"""

_HEAD = """
## {framework}

Why a way is called, where the table says nothing else: {usual}.

| operation | called | alternative | smallest | largest | execution | accepted because |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """The text of docs/idioms.md."""
    idioms, ways = declared(), measured()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for (framework, _), idiom in idioms.items():
        reasons[framework][idiom.because] += 1
    usual = {framework: counts.most_common(1)[0][0] for framework, counts in reasons.items()}
    by_framework: dict[str, list[str]] = defaultdict(list)
    for (framework, operation), idiom in idioms.items():
        by_framework[framework] += _rows(framework, operation, idiom, ways, usual[framework])
    tables = [
        _HEAD.format(framework=framework, usual=usual[framework]) + "".join(rows)
        for framework, rows in by_framework.items()
    ]
    return "".join([_PAGE.format(slower=f"{SLOWER_FROM:g}"), *tables])


def _rows(
    framework: str, operation: str, idiom: Idiom, ways: Mapping[Way, Measured], usual: str
) -> Iterator[str]:
    for other in idiom.alternatives:
        found = ways[framework, operation, other]
        ratios = [*found.ratios.values()] or [math.nan]
        figures = (
            "-" if math.isnan(ratio) else f"{ratio:.2f}" for ratio in (ratios[0], ratios[-1])
        )
        because = "" if idiom.because == usual else f": {idiom.because}"
        worst = f"{found.worst:.2f} ({found.execution})" if found.execution else "-"
        called = f"`{idiom.called}`{because}"
        accepted = idiom.accepted if found.worst > SLOWER_FROM else ""
        cells = (f"`{operation}`", called, f"`{other}`", *figures, worst, accepted)
        yield f"| {' | '.join(cells)} |\n"
