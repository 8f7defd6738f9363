"""fwbench reports what the frameworks' own instruments report, each in a process of its own.

This file is a script and a test file in one. Sessions of fwbench measure twelve operations at their
quick sizes, and beside each measurement, within a second, ``instruments.py`` measures the same in a
process of its own, which calls the frameworks by hand and lives as long as the session. Which of
the two comes first alternates. Of a case the figure is the median over all such pairs of fwbench's
median over the instrument's. With one thread the geometric mean must be within 3 % of 1, and nine
cases in ten within 10 %; the others are listed, in brackets with the lowest and the highest of
their pairs. Also shown is how often an instrument agrees with itself: in what share of pairs of
turns, to within 10 %. JAX needs an environment of its own: ``fwbench env add jax "jax[cpu]"``.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

import bounds
import pairs
import pytest
from instruments import OPERATIONS

from fwbench.cases.case import Case
from fwbench.workloads.operation import Operation

_EXECUTIONS = {"jax": "jit", "mxnet": "eager", "tensorflow": "graph", "torch": "eager"}

_MEAN_WITHIN, _WITHIN, _MOST = 1.03, 1.1, 0.9
_BOUND = "0.97 to 1.03; 90 % within 10 %"

#: In each session.
_TURNS = 3


@pytest.mark.parametrize("turn", range(_TURNS))
@pytest.mark.fwbench(*OPERATIONS, devices="cpu", sizes="quick")
def test_operation(case: Case, turn: int) -> None:
    pairs.measure(case, turn, _by_instrument)


def _by_instrument(case: Case) -> float:
    """The median that the framework's instrument finds, in seconds a call."""
    instrument = _instrument(case.framework.name, os.environ["OMP_NUM_THREADS"])
    operation = case.cell.workload
    assert isinstance(operation, Operation)
    assert instrument.stdin is not None
    assert instrument.stdout is not None
    number = operation.by_preset.quick.index(case.cell.size)
    print(operation.name, number, file=instrument.stdin, flush=True)
    return float(instrument.stdout.readline())


@cache
def _instrument(framework: str, threads: str) -> subprocess.Popen[str]:
    script = str(Path(__file__).with_name("instruments.py"))
    command = [sys.executable, "-P", script, framework, threads]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _near(ratio: float, within: float) -> bool:
    return max(ratio, 1 / ratio) <= within


def _summary(what: str, figures: Collection[float], *, is_bound: bool = False) -> bounds.Finding:
    """The mean of the figures, and the shares of those close to 1."""
    mean = statistics.geometric_mean(figures)
    number = len(figures)
    five, ten = (sum(_near(x, within) for x in figures) / number for within in (1.05, _WITHIN))
    kept = _near(mean, _MEAN_WITHIN) and ten >= _MOST
    figure = f"{mean:.3f}; {five:.0%} and {ten:.0%} within 5 and 10 %"
    judged = (_BOUND, kept) if is_bound else ()
    return bounds.Finding(f"{what}, {number} cases", figure, *judged)


def _of_the_instrument(
    what: str, every: Collection[Sequence[tuple[float, float]]]
) -> bounds.Finding:
    """In what share of pairs of turns the instrument has found the same."""
    turns = [turn for case in every for turn in itertools.pairwise(by for _, by in case)]
    same = statistics.fmean(_near(first / second, _WITHIN) for first, second in turns)
    return bounds.Finding(f"{what}: the instrument from turn to turn", f"{same:.0%} within 10 %")


def main() -> int:
    """Measure, print, and give the exit status."""
    texts = {"frameworks": "default: all four", "threads": "default: 1,2"}
    given = bounds.arguments(__doc__, rounds=3, texts=texts)
    frameworks = given.frameworks.split(",") if given.frameworks else _EXECUTIONS
    threads_of = [*map(int, (given.threads or "1,2").split(","))]
    summaries: list[bounds.Finding] = []
    far: list[bounds.Finding] = []
    every: dict[int, list[float]] = defaultdict(list)
    for framework, threads in itertools.product(frameworks, threads_of):
        what = f"{framework}, {threads} threads"
        chosen = (f"--fw={framework}", f"--fw-execution={_EXECUTIONS[framework]}")
        # CPUs of a shared machine are not equally fast: with one thread both processes use one.
        place = ["--fw-toggle=pin=on"] if threads == 1 else []
        options = (*chosen, *place, f"--fw-threads={threads}", "--fw-revisit=0")
        found = pairs.measured(__file__, given.rounds, *options)
        ratios = {
            f"{operation} {size}": [fwbench_s / by_hand_s for fwbench_s, by_hand_s in turns]
            for (_, operation, size), turns in found.items()
        }
        figures = {case: statistics.median(turns) for case, turns in ratios.items()}
        summaries += [_summary(what, figures.values()), _of_the_instrument(what, found.values())]
        every[threads] += figures.values()
        for case, figure in figures.items():
            if not _near(figure, _WITHIN):
                turns = f"{figure:.2f} ({min(ratios[case]):.2f} to {max(ratios[case]):.2f})"
                far.append(bounds.Finding(f"{what}, {case}", turns))
    for threads, all_figures in every.items():
        is_bound = threads == 1
        summaries.append(_summary(f"all, {threads} threads", all_figures, is_bound=is_bound))
    return bounds.conclude([*summaries, *far])


if __name__ == "__main__":
    sys.exit(main())
