"""The statements of 2020, judged by runs of today."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from fwbench.records.measurement import Measurement, blur
from fwbench.records.units import count, percent, time
from fwbench.report.condition import is_contended
from fwbench.report.model import trainings
from fwbench.report.section import Row, Section, TableCell
from fwbench.report.training import accuracy, epochs_s
from fwbench_extras.studies.report_2020 import lenet, operations, published
from fwbench_extras.studies.report_2020.operations import Ratios, by_operation, mean, times

#: "Way faster": less time for every operation, and this many times less on their geometric mean.
_WAY = 2.0

#: Fewer values do not show their spread.
FEW = 3

#: A loss of accuracy that is worth the word, as a share.
_LOST = 0.001

#: "2.5x", with some room.
_LONG = 2.0

#: The statement is about all operations but these.
_CREATION = ("from_numpy", "from_list")

#: The share of the published sizes that must have been measured to judge the whole.
_ENOUGH = 0.5

_NOTE = (
    f'"Way faster": less time for every operation, and {_WAY:.0f} times less on their geometric '
    "mean. Other differences count where the 95 % interval of the ratio from process to process "
    f"leaves 1 out, accuracy from {100 * _LOST:.1f} points on, first epochs from {_LONG:.0f} times "
    "the others on. "
    "First epochs are whole, and of processes that ran nothing before. "
    "Contended cases, and those of frameworks that the report does not have, judge nothing."
)

_NOTHING = (
    "fwbench has written none of these records on a CPU or a first GPU: nothing can be concluded."
)


class Verdict(StrEnum):
    """The judgement of a statement by a run."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be determined from this run"


#: A verdict and the figures that it follows from.
Finding = tuple[Verdict, str]


@dataclass(frozen=True)
class _Evidence:
    """The measurements on one device.

    Attributes:
        device: ``cpu`` or ``gpu``.
        records: of the cases that can judge statements.
        contended: number of cases that could have, had they not been contended.
        ratios: of operations, TensorFlow's time over MXNet's.
        lenets: LeNet as it was trained in 2020.
    """

    device: str
    records: Sequence[Measurement]
    contended: int
    ratios: Sequence[Ratios]
    lenets: Mapping[lenet.Case, Measurement]

    @classmethod
    def of(cls, device: str, measured: Sequence[Measurement]) -> Self:
        """The evidence in all cases that were measured on a device."""
        known = {row["framework"] for row in published.rows("operations", device)}
        about = [record for record in measured if record.facts.framework in known]
        records = [record for record in about if not is_contended(record.facts)]
        ratios = operations.ratios(device, records)
        contended = len(about) - len(records)
        return cls(device, records, contended, ratios, lenet.measured(records))

    def longest(self, *cases: tuple[str, str]) -> list[Measurement]:
        """The longest trainings of as many epochs in all the cases; [] without any."""
        epochs = {epochs for *_, epochs in self.lenets}
        common = [n for n in epochs if all((*case, n) in self.lenets for case in cases)]
        return [self.lenets[*case, max(common)] for case in cases] if common else []


@dataclass(frozen=True)
class _Statement:
    """A statement of 2020.

    Attributes:
        text: as it was made.
        published: the figures that it was made on, for a device.
        judge: the judgement by a run.
    """

    text: str
    published: Callable[[str], str]
    judge: Callable[[_Evidence], Finding]


def section(measured: Mapping[str, Sequence[Measurement]]) -> Section:
    """Every statement, for each device, with its verdict."""
    rows = []
    for device, records in measured.items():
        evidence = _Evidence.of(device, records)
        rows += [_row(statement, evidence) for statement in _STATEMENTS]
    return Section(
        "What became of the statements of 2020",
        ("statement", "device", "verdict", "2020", "today"),
        rows,
        notes=[_NOTE if rows else _NOTHING],
    )


def _row(statement: _Statement, evidence: _Evidence) -> Row:
    device = evidence.device
    then = statement.published(device)
    verdict, today = statement.judge(evidence)
    if evidence.contended:
        today += f" ({count(evidence.contended, 'contended case')} left out)"
    texts = (f'"{statement.text}"', device, verdict, then, today)
    return Row([TableCell(text) for text in texts], {"device": device})


def _but_creation(ratios: Sequence[Ratios]) -> list[Ratios]:
    return [entry for entry in ratios if entry.operation not in _CREATION]


def _operations_of_2020(device: str) -> str:
    about = _but_creation(operations.ratios(device, ()))
    return _extent(by_operation(about), lambda ratios: ratios.published)


def _way_faster(evidence: _Evidence) -> Finding:
    about = _but_creation(evidence.ratios)
    known = [entry for entry in about if entry.completion is not None]
    by, all_operations = by_operation(known), by_operation(about)
    if len(known) < _ENOUGH * len(about) or len(by) < len(all_operations):
        return Verdict.UNKNOWN, (
            f"{len(by)} of {len(all_operations)} operations were measured in both frameworks, in "
            f"{len(known)} of {len(about)} sizes: pytest benchmarks --fw-size paper"
        )
    means = [mean(entry.completion for entry in group) or 0.0 for group in by.values()]
    way = min(means) > 1 and statistics.geometric_mean(means) >= _WAY
    done = _extent(by, lambda ratios: ratios.completion)
    returned = _extent(by, lambda ratios: ratios.dispatch)
    faster = sum(value > 1 for value in means)
    return Verdict.HOLDS if way else Verdict.FAILS, (
        f"less time for {faster} of {len(means)} operations: {done} until done; {returned} until "
        "returned"
    )


def _extent(by: Mapping[str, Sequence[Ratios]], ratio: Callable[[Ratios], float | None]) -> str:
    """The smallest and the largest mean, with their operations."""
    means = {name: value for name, group in by.items() if (value := mean(map(ratio, group)))}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return f"{times(means[low])} ({low}) to {times(means[high])} ({high})"


def _compared(record: Measurement, other: Measurement) -> Finding:
    """Judge that a record takes longer than another; with times, ratio and interval in words."""
    ratio, off = record.median_s / other.median_s, blur([(record, other)])
    low, high = ratio / off, ratio * off
    text = (
        f"{_name(record)} {time(record.median_s)}, {_name(other)} {time(other.median_s)}: "
        f"{times(ratio)}"
    )
    if min(len(record.values_s), len(other.values_s)) < FEW:
        return Verdict.UNKNOWN, f"{text}, of fewer than {FEW} values"
    verdict = Verdict.UNKNOWN
    if low > 1 or high < 1:
        verdict = Verdict.HOLDS if low > 1 else Verdict.FAILS
    return verdict, f"{text} ({times(low)} to {times(high)})"


def _name(record: Measurement) -> str:
    return f"{record.facts.framework} {record.facts.execution}"


def _missing(*cases: tuple[str, str]) -> Finding:
    return Verdict.UNKNOWN, (
        f"needs LeNet in {' and '.join(map(' '.join, cases))}, as many whole epochs of the real "
        "MNIST: pytest benchmarks/test_training.py -k lenet --fw-train epochs=5"
    )


_EAGER, _HYBRIDIZE = ("mxnet", "eager"), ("mxnet", "hybridize")
_GRAPH, _XLA = ("tensorflow", "graph"), ("tensorflow", "xla")


def _takes_longer(*cases: tuple[str, str]) -> Callable[[_Evidence], Finding]:
    """The judgement that the first training takes longer than the second."""

    def judge(evidence: _Evidence) -> Finding:
        pair = evidence.longest(*cases)
        return _compared(*pair) if pair else _missing(*cases)

    return judge


def _hybridize(evidence: _Evidence) -> Finding:
    pair = evidence.longest(_EAGER, _HYBRIDIZE)
    if not pair:
        return _missing(_EAGER, _HYBRIDIZE)
    verdict, text = _compared(*pair)
    before, after = map(accuracy, pair)
    if before is None or after is None:
        return Verdict.UNKNOWN, f"{text}; accuracy was not tested in both"
    if round(before - after, 6) < _LOST:
        verdict = Verdict.FAILS
    return verdict, f"{text}; accuracy {percent(before)} and {percent(after)}"


def first_epochs(records: Sequence[Measurement]) -> list[tuple[float, str]]:
    """Cold first epochs, over the median of the others, with their cases.

    Of whole epochs: of a few steps most of the first is compilation. A record of one epoch has no
    others.
    """
    return [
        (
            epochs_s(record)[0] / record.median_s,
            f"{record.facts.workload} {record.contestant} {record.facts.size}",
        )
        for record in trainings(records)
        if record.facts.first_in_process and has_whole_epochs(record)
        if len(epochs_s(record)) > 1
    ]


def has_whole_epochs(record: Measurement) -> bool:
    """True if its epochs visited all that there is to train on."""
    facts = record.facts
    examples = facts.data.train if facts.data else None
    return examples is not None and facts.steps_per_epoch == examples // facts.size


def _first_epoch(evidence: _Evidence) -> Finding:
    ratios = first_epochs(evidence.records)
    if not ratios:
        return Verdict.UNKNOWN, (
            "needs two or more whole epochs of a loop that is the first case of its process: "
            "pytest benchmarks/test_training.py -k lenet --fw-train epochs=5"
        )
    (low, least), (high, most) = min(ratios), max(ratios)
    verdict = Verdict.FAILS
    if low >= _LONG:
        verdict = Verdict.HOLDS
    elif high >= _LONG:
        verdict = Verdict.UNKNOWN
    return verdict, f"{times(low)} ({least}) to {times(high)} ({most})"


def _eager_is_faster(evidence: _Evidence) -> Finding:
    """TensorFlow's eager execution against its graph: models, and the steps of models."""
    pairs = _graph_and_eager(evidence.records)
    if not pairs:
        return Verdict.UNKNOWN, "needs a model, or its step, in tensorflow eager and graph"
    compared = [(graph.facts.workload, *_compared(graph, eager)) for graph, eager in pairs]
    verdicts = {verdict for _, verdict, _ in compared}
    text = "; ".join(f"{workload}: {text}" for workload, _, text in compared)
    return verdicts.pop() if len(verdicts) == 1 else Verdict.UNKNOWN, text


def _graph_and_eager(records: Sequence[Measurement]) -> list[tuple[Measurement, Measurement]]:
    """The pairs of TensorFlow's records that differ in their execution alone."""
    models = {
        (*_model(record), record.facts.execution): record for record in records if _trains(record)
    }
    return [
        (graph, models[*model, "eager"])
        for (*model, execution), graph in models.items()
        if execution == "graph" and (*model, "eager") in models
    ]


def _trains(record: Measurement) -> bool:
    return record.facts.direction == "train" and record.facts.framework == "tensorflow"


def _model(record: Measurement) -> tuple[object, ...]:
    facts = record.facts
    return (facts.work, facts.steps_per_epoch, len(record.epochs), *record.requested.items())


def _lenet_of_2020(*cases: tuple[str, str]) -> Callable[[str], str]:
    """For a device: seconds and accuracies of the longest training that all the cases had."""

    def text(device: str) -> str:
        rows = {
            (row["framework"], row["execution"], int(row["epochs"])): row
            for row in published.rows("lenet", device)
        }
        epochs = max(e for _, _, e in rows if all((*case, e) in rows for case in cases))
        figures = "; ".join(_figures(rows[*case, epochs]) for case in cases)
        return f"{epochs} epochs: {figures}"

    return text


def _figures(row: Mapping[str, str]) -> str:
    total_s, reached = float(row["median_total_s"]), float(row["median_accuracy"])
    return f"{row['framework']} {row['execution']} {total_s:.0f} s, {percent(reached)}"


_STATEMENTS = (
    _Statement("MXNet apart from creation is way faster", _operations_of_2020, _way_faster),
    _Statement(
        "MXNet trains LeNet faster", _lenet_of_2020(_EAGER, _GRAPH), _takes_longer(_GRAPH, _EAGER)
    ),
    _Statement(
        "hybridize trades accuracy for time", _lenet_of_2020(_HYBRIDIZE, _EAGER), _hybridize
    ),
    _Statement("XLA slows LeNet down", _lenet_of_2020(_XLA, _GRAPH), _takes_longer(_XLA, _GRAPH)),
    _Statement("the first epoch takes 2.5x", lambda _: "the statement itself", _first_epoch),
    _Statement("eager is faster", lambda _: "no figures were published", _eager_is_faster),
)
