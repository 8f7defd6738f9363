"""Memory that MXNet's planner saves, next to the figure of its paper: by what results share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fwbench.errors import UsageError
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.records.units import mebibytes
from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.model import Run
from fwbench.report.section import Row, Section, TableCell, by_work, row_keys

ORDER = 20

OPTION = "memory-plan"

HELP = (
    "what MXNet's planner reserves by what results share, next to its paper of 2015 "
    "(measure networks with --fw mxnet --fw-memory)"
)

#: What is reserved in MiB, by strategy.
_Plan = Mapping[str, int]

#: Where a strategy's figures come from, in the order of the paper's figure.
_ORIGINS = {
    "none": "computed from the log of MXNet's plan",
    "in place": "MXNet's plan with NNVM_EXEC_MATCH_RANGE=0",
    "co-share": "computed from the log of MXNet's plan; an upper bound",
    "both": "MXNet's plan",
}

#: The same in a word, for charts.
_KINDS = {"none": "computed", "in place": "planned", "co-share": "computed", "both": "planned"}

#: Chen et al. 2015, "MXNet: A Flexible and Efficient Machine Learning Library for Heterogeneous
#: Distributed Systems", section 4: none over both, for AlexNet, GoogLeNet and VGG with batches of
#: 64.
_PUBLISHED = {"forward": 4.0, "training": 2.0}

_NOTE = (
    "Memory for the results of a graph, without parameters and their gradients. A result may be "
    "written over an operand that is not needed any more (in place), or into the memory of another "
    "result that is needed no more (co-share). MXNet 1.9.1 can switch off co-sharing alone; its "
    "documented MXNET_EXEC_ENABLE_INPLACE does nothing."
)


def sections(runs: Sequence[Run]) -> list[Section]:
    """A section for each network that was planned by every strategy.

    Raises:
        UsageError: there is none.
    """
    names = [run.name for run in runs]
    records = (record for run in runs for record in run.records if _plans(record.facts))
    planned = [_section(*line) for lines in by_work(records, names) for line in lines]
    if not planned:
        raise UsageError(
            f"--{OPTION} shows networks of MXNet whose memory was planned, and these runs have "
            "none; measure some: pytest benchmarks/test_models.py -k googlenet_step --fw mxnet "
            "--fw-execution hybridize --fw-memory --benchmark-json=run.json"
        )
    return planned


def _plans(facts: CaseFacts) -> dict[str, _Plan]:
    """The plans of a case, for the forward pass alone and for all of it."""
    memories = {"forward": facts.forward_memory, "training": facts.memory}
    if facts.direction == "forward":
        memories = {"forward": facts.memory}
    return {
        what: memory.planned_by_strategy
        for what, memory in memories.items()
        if memory is not None and memory.planned_by_strategy
    }


def _section(name: str, record: Measurement) -> Section:
    facts = record.facts
    plans = _plans(facts)
    title = f"MXNet's memory plan: {facts.workload} {facts.size_text} {facts.dtype}, {name}"
    rows = [
        Row([TableCell(strategy), *_cells(plans, strategy), TableCell(origin)], row_keys(record))
        for strategy, origin in _ORIGINS.items()
    ]
    columns = ["shared", *(part for what in plans for part in (what, "none over it")), "origin"]
    return Section(title, columns, rows, [draw(title, plans)], [_NOTE, *_compared(plans)])


def _cells(plans: Mapping[str, _Plan], strategy: str) -> Iterator[TableCell]:
    for plan in plans.values():
        size = plan.get(strategy)
        yield TableCell("" if size is None else mebibytes(size), size)
        ratio = _saved(plan, strategy)
        yield TableCell("" if ratio is None else f"{ratio:.1f}x", ratio)


def _saved(plan: _Plan, strategy: str) -> float | None:
    """The memory of results that share nothing, over that of a strategy."""
    size = plan.get(strategy)
    return plan["none"] / size if size and "none" in plan else None


def _compared(plans: Mapping[str, _Plan]) -> Iterator[str]:
    ratios = [
        f"{what} {ratio:.1f}x (the paper: {_PUBLISHED[what]:g}x)"
        for what, plan in plans.items()
        if (ratio := _saved(plan, "both")) is not None
    ]
    if ratios:
        yield f"None over both: {', '.join(ratios)}."


def draw(title: str, plans: Mapping[str, _Plan]) -> Chart:
    """The paper's figure: a bar for each strategy, labelled by the origin of its figure.

    Args:
        plans: bytes by strategy, for the forward pass and for training.
    """
    series = {
        what: {
            f"{name}, {kind}": plan[name] / 2**20 for name, kind in _KINDS.items() if name in plan
        }
        for what, plan in plans.items()
    }
    return bars.draw(title, series, "{:,.0f} MiB".format)
