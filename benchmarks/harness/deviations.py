"""Deviations of networks from their float64 references, and the limits.

Runs all networks of ``benchmarks/test_models.py`` at their smallest sizes in PyTorch (eager),
MXNet (hybridize) and TensorFlow (graph): a training step, the logits, and the gradients. The
figure is the deviation that comes closest to its bound, as a share of it. A bound is worth as much
as it would catch, so below the losses is what an update that is left out would make of the second
one, in parts of its bound, by the reference alone. Times are of no interest here: other load does
no harm.

    python benchmarks/harness/deviations.py --select "googlenet_bn_step or gpt_small_step"
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import bounds
import numpy as np

from fwbench.cases.verify import loss_tolerances
from fwbench.workloads import FORWARD_BACKWARDS, INFERENCES, MODELS
from fwbench.workloads.models import reference
from fwbench.workloads.models.steps import ModelStep

_SUITE = "benchmarks/test_models.py"

#: The shortest session in which cases are verified, and recorded.
_OPTIONS = (
    "--fw=torch,mxnet,tensorflow",
    "--fw-execution=eager,hybridize,graph",
    "--fw-warmup=0",
    "--benchmark-max-time=0.01",
    "--benchmark-min-rounds=1",
    "--fw-timeout=1200",
)

#: How each framework is run.
_EXECUTIONS = {"torch": "eager", "mxnet": "hybridize", "tensorflow": "graph"}

#: The facts of a deviation and of its bound.
_FACTS = (("max_loss_deviation", "loss_tolerance"), ("max_relative_error", "tolerance"))

#: What a missing update must stand out by, in parts of the bound.
_SEEN_FROM = 1.5


def _selected(chosen: str) -> str:
    """For pytest's ``-k``: each network at its smallest size, each framework in its execution."""
    kinds = (MODELS, INFERENCES, FORWARD_BACKWARDS)
    known = {model.model for model in MODELS}
    works = [work for kind in kinds for work in kind if work.model in known]
    sizes = " or ".join(f"({work.name} and {work.sizes.quick[0]})" for work in works)
    runs = " or ".join(f"({name} and {how})" for name, how in _EXECUTIONS.items())
    return f"({sizes}) and ({runs})" + (f" and ({chosen})" if chosen else "")


def _shares(facts: Mapping[str, Any]) -> Iterator[float]:
    for deviation, allowed in _FACTS:
        if facts.get(allowed):
            yield facts[deviation] / facts[allowed]


def _missing_update(step: ModelStep) -> float:
    """The change of the second loss where the first update is left out, in parts of its bound."""
    size = step.smallest
    training = step.at(size)
    _, (x, labels) = training.check_batches(size["batch"], 2)
    examples = x.astype(np.float64) if training.vocabulary is None else x
    without, _ = reference.gradients(training.graph, training.initial(), examples, labels)
    losses = reference.losses(training, size["batch"], 2)
    allowed = loss_tolerances(training, losses, "float32")[1]
    return float(abs(without - losses[1]) / allowed)


def _findings(
    shares_by_workload: Mapping[str, Sequence[tuple[str, float]]],
) -> Iterator[bounds.Finding]:
    steps = {step.name: step for step in MODELS}
    for workload, shares in sorted(shares_by_workload.items()):
        figure = ", ".join(f"{framework} {share:.2g}" for framework, share in shares)
        yield bounds.Finding(workload, figure, "1", all(share <= 1 for _, share in shares))
        if workload in steps:
            times = _missing_update(steps[workload])
            what = f"{workload}, an update left out"
            yield bounds.Finding(
                what, f"{times:.3g}", f"at least {_SEEN_FROM}", times >= _SEEN_FROM
            )


def main() -> int:
    """Measure, print, and give the exit status."""
    texts = {"select": "which cases, as pytest's -k"}
    given = bounds.arguments(__doc__, rounds=1, texts=texts)
    shares_by_workload = defaultdict(list)
    selected = f"-k={_selected(given.select)}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        for _ in range(given.rounds):
            for record in bounds.records(path, _SUITE, *_OPTIONS, selected):
                facts = record["extra_info"]["fwbench"]
                share = max(_shares(facts))
                shares_by_workload[facts["workload"]].append((facts["framework"], share))
    return bounds.conclude([*_findings(shares_by_workload)])


if __name__ == "__main__":
    sys.exit(main())
