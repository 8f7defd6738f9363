"""Plans GoogLeNet in MXNet by each strategy, and draws the figure of docs/figures.md.

    python scripts/memory_plan.py           writes docs/memory-plan.svg, and prints the page's table
    python scripts/memory_plan.py --drawn   draws it from the table that is there; without MXNet

A plan depends on the network, the batch and MXNet, not on the machine. Nothing is computed, so
this takes seconds where a verified case takes minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fwbench.frameworks import registry
from fwbench.frameworks.learner import Job
from fwbench.report.drawing.chart import on_page
from fwbench.workloads import MODELS
from fwbench_extras.studies import memory_plan

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURE = DOCS / "figures.md", DOCS / "memory-plan.svg"

_NETWORK, _SIZE = "googlenet", "b16i224d1"
_TITLE = "GoogLeNet, 16 pictures of 224 x 224"

#: What is planned, by whether it has a backward pass.
_PASSES = {"forward": False, "training": True}

#: What the page calls the strategies of the record.
_NAMES = {"none": "nothing", "in place": "in place", "co-share": "co-share", "both": "both"}

#: By pass, the bytes that each strategy reserves.
Plans = dict[str, dict[str, int]]

_MEBIBYTE = 2**20


def plan(training: bool) -> dict[str, int]:
    """The bytes that each strategy reserves, in whole MiB; in a process that has planned nothing.

    Args:
        training: whether there is a backward pass.
    """
    network = next(model for model in MODELS if model.model == _NETWORK)
    size = network.form.read(_SIZE)
    job = Job(network.at(size), "cpu", "hybridize", "float32", size["batch"])
    plans = registry.load("mxnet", 1).learner(job).planned_by_strategy(training=training)
    assert plans is not None  # noqa: S101 (hybridized networks have a plan)
    return {name: round(size / _MEBIBYTE) * _MEBIBYTE for name, size in plans.items()}


def planned() -> Plans:
    """Both passes, a process each."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, max_tasks_per_child=1) as processes:
        return dict(zip(_PASSES, processes.map(plan, _PASSES.values()), strict=True))


def table(plans: Plans) -> Iterator[str]:
    """The rows of the page's table."""
    for strategy, name in _NAMES.items():
        cells = [name]
        for by_strategy in plans.values():
            size = by_strategy[strategy]
            cells += [f"{size / _MEBIBYTE:,.0f} MiB", f"{by_strategy['none'] / size:.1f}x"]
        yield f"| {' | '.join(cells)} |"


def shown(page: str) -> Plans:
    """Read the plans from the text of the page."""
    number = r"([\d,]+) MiB"
    plans: Plans = {name: {} for name in _PASSES}
    for strategy, name in _NAMES.items():
        row = re.search(rf"^\| {name} \| {number} \| [^|]+ \| {number} \|", page, re.MULTILINE)
        if row is None:
            raise ValueError(f"{PAGE.name} has no row for {name!r}: write the table first")
        for by_strategy, text in zip(plans.values(), row.groups(), strict=True):
            by_strategy[strategy] = int(text.replace(",", "")) * _MEBIBYTE
    return plans


def figure(plans: Plans) -> str:
    """The picture, the same each time."""
    chart = memory_plan.draw(_TITLE, plans)
    return on_page(chart).replace(chart.uuid, "memory-plan") + "\n"


def main() -> int:
    """Plan unless the table is to be drawn, and draw; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drawn", action="store_true", help="draw what the page's table says")
    if parser.parse_args().drawn:
        plans = shown(PAGE.read_text(encoding="utf-8"))
    else:
        plans = planned()
        print("\n".join(table(plans)))
    FIGURE.write_text(figure(plans), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
