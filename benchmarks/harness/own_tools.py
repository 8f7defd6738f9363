"""fwbench reports what the frameworks' own instruments report, each in a process of its own.

This file is a script and a test file in one, as accuracy.py is. Twelve operations at their quick
sizes, with one and two threads, are measured by a session of fwbench, and then in a process of
``instruments.py``, which calls the frameworks by hand; in the next turn the other way round. Of a
case the figure is the median over turns of fwbench's median over the instrument's. The
geometric mean must be within 3 % of 1, and nine cases in ten within 10 %; the others are listed, in
brackets with the lowest and the highest of their turns. JAX needs an environment of its own:
``fwbench env add jax "jax[cpu]"``.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import bounds
import pytest
from instruments import OPERATIONS

from fwbench.cases.case import Case
from fwbench.machine import thread_variables
from fwbench.workers.environments import Environments

_EXECUTIONS = {"jax": "jit", "mxnet": "eager", "tensorflow": "graph", "torch": "eager"}

_MEAN_WITHIN, _WITHIN, _MOST = 1.03, 1.1, 0.9
_BOUND = "0.97 to 1.03; 90 % within 10 %"


@pytest.mark.fwbench(*OPERATIONS, devices="cpu")
def test_operation(case: Case) -> None:
    case.measure()


def _fwbench(framework: str, threads: int) -> dict[str, float]:
    """Medians that a session reports, by operation and size."""
    chosen = (f"--fw={framework}", f"--fw-threads={threads}", "--fw-size=quick", "--fw-revisit=0")
    execution = f"--fw-execution={_EXECUTIONS[framework]}"
    with tempfile.TemporaryDirectory() as folder:
        records = bounds.records(Path(folder) / "run.json", __file__, *chosen, execution)
    found = [(record["extra_info"]["fwbench"], record["stats"]["median"]) for record in records]
    return {f"{facts['workload']} {facts.get('shape') or facts['size']}": s for facts, s in found}


def _instrument(framework: str, threads: int) -> dict[str, float]:
    """Medians that the framework's instrument finds."""
    python = Environments(bounds.REPOSITORY).interpreter_of(framework)
    script = str(Path(__file__).with_name("instruments.py"))
    variables = {**os.environ, **thread_variables(threads)}
    command = [python, "-P", script, framework, str(threads)]
    found: dict[str, float] = json.loads(subprocess.check_output(command, env=variables))
    return found


def _ratios(framework: str, threads: int, turns: int) -> dict[str, list[float]]:
    """fwbench's figure over the instrument's, of each case and turn."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for turn in range(turns):
        order = [_fwbench, _instrument][:: -1 if turn % 2 else 1]
        found = {measure: measure(framework, threads) for measure in order}
        for case, instrument_s in found[_instrument].items():
            ratios[case].append(found[_fwbench][case] / instrument_s)
    return ratios


def _near(ratio: float, within: float) -> bool:
    return max(ratio, 1 / ratio) <= within


def _summary(what: str, figures: Collection[float]) -> bounds.Finding:
    """The mean of the figures, and the shares of those close to 1."""
    mean = statistics.geometric_mean(figures)
    number = len(figures)
    five, ten = (sum(_near(x, within) for x in figures) / number for within in (1.05, _WITHIN))
    kept = _near(mean, _MEAN_WITHIN) and ten >= _MOST
    figure = f"{mean:.3f}; {five:.0%} and {ten:.0%} within 5 and 10 %"
    return bounds.Finding(f"{what}, {number} cases", figure, _BOUND, kept)


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=3, texts={"frameworks": "default: all four"})
    frameworks = given.frameworks.split(",") if given.frameworks else _EXECUTIONS
    summaries: list[bounds.Finding] = []
    far: list[bounds.Finding] = []
    every: list[float] = []
    for framework, threads in itertools.product(frameworks, (1, 2)):
        what = f"{framework}, {threads} threads"
        ratios = _ratios(framework, threads, given.rounds)
        figures = {case: statistics.median(turns) for case, turns in ratios.items()}
        summaries.append(_summary(what, figures.values()))
        every += figures.values()
        for case, figure in figures.items():
            if not _near(figure, _WITHIN):
                turns = f"{figure:.2f} ({min(ratios[case]):.2f} to {max(ratios[case]):.2f})"
                far.append(bounds.Finding(f"{what}, {case}", turns))
    return bounds.conclude([*summaries, _summary("all", every), *far])


if __name__ == "__main__":
    sys.exit(main())
