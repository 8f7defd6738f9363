"""What became of the statements of 2020."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fwbench.gate.statistics import interval
from fwbench.records.entry import work_of
from fwbench.report.model import Record, trainings
from fwbench.report.sections.table import Cell, Part, Row, percent
from fwbench.report.sections.training import accuracy_of, epochs_of
from fwbench.report.units import time
from fwbench.studies.report_2020 import lenet, published
from fwbench.studies.report_2020.operations import Ratios, mean, times

#: By framework and execution.
LeNets = Mapping[tuple[str, str], Record]

_CONFIDENCE = 0.99

#: "Way faster": less time for every operation, and on their geometric mean so many times less.
_WAY = 2.0

#: So few values say nothing of how they spread.
_FEW = 3

#: A loss of accuracy that is worth the word, as a share.
_LOST = 0.001

#: "2.5x", with some room.
_LONG = 2.0

#: The statement is about all operations but these.
_CREATION = ("from_numpy", "from_list")

#: Of what was published, so much must have been measured to judge the whole.
_ENOUGH = 0.5

_NOTE = (
    f'"Way faster": less time for every operation, and {_WAY:.0f} times less on their geometric '
    f"mean. Other differences count where a {_CONFIDENCE:.0%} bootstrap interval of the ratio "
    f"leaves 1 out, accuracy from {100 * _LOST:.1f} points on, first epochs from {_LONG:.0f} times "
    "the others on. Intervals over the epochs of one launch say less than those over launches."
)

_NOTHING = "fwbench has written none of these records on a CPU or a first GPU: nothing can be told."


class Verdict(StrEnum):
    """What a run says of a statement."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be told from this run"


@dataclass(frozen=True)
class Finding:
    """What became of a statement on one device.

    Attributes:
        statement: as it was made.
        device: ``cpu`` or ``gpu``.
        verdict: the verdict.
        published: the figures that it was made on.
        today: the run's.
    """

    statement: str
    device: str
    verdict: Verdict
    published: str
    today: str


def part(
    measured: Mapping[str, Sequence[Record]], operations: Mapping[str, Sequence[Ratios]]
) -> Part:
    """Every statement, for each device.

    Args:
        measured: records by device.
        operations: what became of them, by device.
    """
    findings = [
        finding
        for device, records in measured.items()
        for finding in (
            _way_faster(device, operations[device]),
            *(judge(device, lenet.measured(records)) for judge in _OF_LENET),
            _first_epoch(device, trainings(records)),
            _eager_is_faster(device, records),
        )
    ]
    return Part(
        "What became of the statements of 2020",
        ("statement", "device", "verdict", "2020", "today"),
        [
            Row(
                [
                    Cell(f'"{one.statement}"'),
                    Cell(one.device),
                    Cell(one.verdict),
                    Cell(one.published),
                    Cell(one.today),
                ],
                {"device": one.device},
            )
            for one in findings
        ],
        notes=[_NOTE if findings else _NOTHING],
    )


def _way_faster(device: str, ratios: Sequence[Ratios]) -> Finding:
    statement = "MXNet apart from creation is way faster"
    about = [one for one in ratios if one.operation not in _CREATION]
    published = _extent(dict(_by(about)), lambda one: one.published)
    known = [one for one in about if one.completion is not None]
    by = dict(_by(known))
    if len(known) < _ENOUGH * len(about) or len(by) < len(_by(about)):
        today = (
            f"{len(by)} of {len(_by(about))} operations were measured in both frameworks, in "
            f"{len(known)} of {len(about)} sizes: pytest benchmarks --fw-size paper"
        )
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    means = [mean(one.completion for one in group) or 0.0 for group in by.values()]
    way = min(means) > 1 and statistics.geometric_mean(means) >= _WAY
    done, returned = (
        _extent(by, lambda one: one.completion),
        _extent(by, lambda one: one.dispatch),
    )
    faster = sum(one > 1 for one in means)
    return Finding(
        statement,
        device,
        Verdict.HOLDS if way else Verdict.FAILS,
        published,
        f"less time for {faster} of {len(means)} operations: {done} until done; {returned} until "
        "returned",
    )


def _by(ratios: Iterable[Ratios]) -> list[tuple[str, list[Ratios]]]:
    return [(k, [*group]) for k, group in itertools.groupby(ratios, lambda one: one.operation)]


def _extent(by: Mapping[str, Sequence[Ratios]], of: Callable[[Ratios], float | None]) -> str:
    """Between which operations the means lie."""
    means = {name: found for name, group in by.items() if (found := mean(map(of, group)))}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return f"{times(means[low])} ({low}) to {times(means[high])} ({high})"


def _compared(one: Record, other: Record) -> tuple[Verdict, str]:
    """Whether one takes longer than the other, and their times, ratio and interval in words."""
    low, high = interval(other.values_s, one.values_s, _CONFIDENCE, 0)
    told = (
        f"{_called(one)} {time(one.median_s)}, {_called(other)} {time(other.median_s)}: "
        f"{times(one.median_s / other.median_s)}"
    )
    if min(len(one.values_s), len(other.values_s)) < _FEW:
        return Verdict.UNKNOWN, f"{told}, of fewer than {_FEW} values"
    verdict = Verdict.UNKNOWN
    if low > 1 or high < 1:
        verdict = Verdict.HOLDS if low > 1 else Verdict.FAILS
    return verdict, f"{told} ({times(low)} to {times(high)})"


def _called(record: Record) -> str:
    return f"{record.framework} {record.execution}"


def _missing(*needed: str) -> str:
    return (
        f"needs LeNet in {' and '.join(needed)}, whole epochs of the real MNIST: pytest benchmarks "
        "-k lenet --fw-epochs 5"
    )


def _trains_faster(device: str, lenets: LeNets) -> Finding:
    statement = "MXNet trains LeNet faster"
    published = _of_2020(device, ("mxnet", "eager"), ("tensorflow", "graph"))
    one, other = lenets.get(("tensorflow", "graph")), lenets.get(("mxnet", "eager"))
    if one is None or other is None:
        today = _missing("tensorflow graph", "mxnet eager")
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    verdict, told = _compared(one, other)
    return Finding(statement, device, verdict, published, told)


def _hybridize(device: str, lenets: LeNets) -> Finding:
    statement = "hybridize trades accuracy for time"
    published = _of_2020(device, ("mxnet", "hybridize"), ("mxnet", "eager"))
    eager, hybridize = lenets.get(("mxnet", "eager")), lenets.get(("mxnet", "hybridize"))
    if eager is None or hybridize is None:
        today = _missing("mxnet eager", "mxnet hybridize")
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    verdict, told = _compared(eager, hybridize)
    before, after = accuracy_of(eager), accuracy_of(hybridize)
    if before is None or after is None:
        today = f"{told}; accuracy was not tested in both"
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    if len(epochs_of(eager)) != len(epochs_of(hybridize)):
        today = f"{told}; accuracies are after different numbers of epochs"
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    if round(before - after, 6) < _LOST:
        verdict = Verdict.FAILS
    today = f"{told}; accuracy {percent(before)} and {percent(after)}"
    return Finding(statement, device, verdict, published, today)


def _xla(device: str, lenets: LeNets) -> Finding:
    statement = "XLA slows LeNet down"
    published = _of_2020(device, ("tensorflow", "xla"), ("tensorflow", "graph"))
    xla, graph = lenets.get(("tensorflow", "xla")), lenets.get(("tensorflow", "graph"))
    if xla is None or graph is None:
        today = _missing("tensorflow xla", "tensorflow graph")
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    verdict, told = _compared(xla, graph)
    return Finding(statement, device, verdict, published, told)


def _first_epoch(device: str, records: Sequence[Record]) -> Finding:
    statement = "the first epoch takes 2.5x"
    published = "the statement itself"
    if not records:
        today = "needs trainings: pytest benchmarks -k lenet"
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    # Over the median of the others: a record of one epoch has no others.
    ratios = [
        (epochs_of(one)[0] / one.median_s, f"{one.workload} {one.series} {one.size}")
        for one in records
        if len(epochs_of(one)) > 1
    ]
    if not ratios:
        today = "no training has more than one epoch"
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    (low, least), (high, most) = min(ratios), max(ratios)
    verdict = Verdict.FAILS
    if low >= _LONG:
        verdict = Verdict.HOLDS
    elif high >= _LONG:
        verdict = Verdict.UNKNOWN
    today = f"{times(low)} ({least}) to {times(high)} ({most})"
    return Finding(statement, device, verdict, published, today)


_OF_LENET = (_trains_faster, _hybridize, _xla)


def _eager_is_faster(device: str, records: Sequence[Record]) -> Finding:
    """TensorFlow's eager execution against its graph: models, and the steps of models."""
    statement = "eager is faster"
    published = "no figures were published"
    models = {
        (work_of(one.facts), one.steps_per_epoch, *one.facts["params"].values(), one.execution): one
        for one in records
        if one.direction == "train" and one.framework == "tensorflow"
    }
    pairs = [
        (graph, models[*work, "eager"])
        for (*work, execution), graph in models.items()
        if execution == "graph" and (*work, "eager") in models
    ]
    if not pairs:
        today = "needs a model, or its step, in tensorflow eager and graph"
        return Finding(statement, device, Verdict.UNKNOWN, published, today)
    compared = [(graph.workload, *_compared(graph, eager)) for graph, eager in pairs]
    verdicts = {verdict for _, verdict, _ in compared}
    return Finding(
        statement,
        device,
        verdicts.pop() if len(verdicts) == 1 else Verdict.UNKNOWN,
        published,
        "; ".join(f"{workload}: {told}" for workload, _, told in compared),
    )


def _of_2020(device: str, *cases: tuple[str, str]) -> str:
    """Seconds and accuracies of the longest training that all the cases had."""
    rows = {
        (row["framework"], row["execution"], int(row["epochs"])): row
        for row in published.rows("lenet", device)
    }
    most = max(e for _, _, e in rows if all((*case, e) in rows for case in cases))
    told = []
    for case in cases:
        total_s, accuracy = (
            float(rows[*case, most][name]) for name in ("median_total_s", "median_accuracy")
        )
        told.append(f"{' '.join(case)} {total_s:.0f} s, {percent(accuracy)}")
    return f"{most} epochs: {'; '.join(told)}"
