"""What a report is made from: runs, read and flattened, whoever wrote them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from fwbench.ceilings import ceilings
from fwbench.ceilings.ceilings import Ceiling
from fwbench.errors import UnreadableRun
from fwbench.gate.verdicts import Comparison
from fwbench.records.facts import CaseFacts, Epoch
from fwbench.records.session_facts import NOT_REACHED, NotMeasured, SessionFacts
from fwbench.records.stored import (
    StoredRecord,
    StoredRun,
    damaged,
    from_json,
    parse,
    unknown_of,
)
from fwbench.records.table import DamagedFact
from fwbench.records.units import count
from fwbench.records.upstream import CommitInfo, MachineInfo, Statistics
from fwbench.report.ranking.contests import Contest, Timed, contests


@dataclass(frozen=True)
class Record:
    """A measured case, as far as a report needs it.

    Attributes:
        run: number of its run, from 0.
        name: of the case, or of the test.
        group: what it is compared with side by side.
        values_s: seconds for one call: a value for each round, or for each launch.
        of_launches: whether the values are launches.
        facts: what fwbench recorded; empty if it did not write the record.
        identity: what the same case has in common in every run.
        stats: pytest-benchmark's; all that is known of values that were not kept.
        asked: the toggles that were asked for, as ``name=value`` by name.
    """

    run: int
    name: str
    group: str
    values_s: Sequence[float]
    of_launches: bool
    facts: CaseFacts
    identity: str = ""
    stats: Statistics = field(default_factory=Statistics)
    asked: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def median_s(self) -> float:
        """The median of the values, in seconds."""
        return statistics.median(self.values_s)

    @cached_property
    def quartiles_s(self) -> tuple[float, float]:
        """The ends of the middle half of the values (IQR); of all of them, where there are few."""
        if not self.values_kept:
            low, high = self.stats.q1, self.stats.q3
            return self.median_s if low is None else low, self.median_s if high is None else high
        if len(self.values_s) < _FEW:
            return min(self.values_s), max(self.values_s)
        low, _, high = statistics.quantiles(self.values_s, n=4, method="inclusive")
        return low, high

    @property
    def values_kept(self) -> bool:
        """Whether the values were stored, and not their statistics alone."""
        return self.of_launches or bool(self.stats.data)

    @property
    def number(self) -> int:
        """How many values were measured."""
        return len(self.values_s) if self.values_kept else self.stats.rounds or 1

    def bare(self) -> Self:
        """The record without its values, for those who keep many."""
        return replace(self, values_s=(), stats=Statistics())

    @property
    def measured(self) -> str:
        """What the values are, and how many."""
        singular, plural = ("round", "rounds")
        if self.of_launches:
            singular, plural = ("launch", "launches")
        elif "epochs" in self.facts:
            singular, plural = ("epoch", "epochs")
        return f"{self.number} {singular if self.number == 1 else plural}"

    @property
    def point_label(self) -> str:
        """What a point of a chart over sizes says: its shape, if any, and the number of values."""
        return ", ".join(filter(None, [self.facts.shape, self.measured]))

    @property
    def series(self) -> str:
        """The line of a chart that it belongs to: framework and execution, and toggles."""
        return " ".join([self.facts.framework, self.facts.execution, *self.asked.values()])

    @property
    def epochs(self) -> Sequence[Epoch]:
        """The epochs of a training loop, those of the warm-up among them; of others none."""
        return self.facts.epochs or ()

    @property
    def is_synthetic(self) -> bool:
        """Whether it learned from generated data."""
        return self.facts.data is not None and self.facts.data.source == "synthetic"


#: Fewer values have no quartiles worth the name.
_FEW = 8

#: What a case's parameters hold in addition to the toggles that were asked for.
_PARTS = ("workload", "framework", "device", "execution", "direction", "dtype", "size")


@dataclass(frozen=True)
class Run:
    """A run, or a comparison, as far as a report needs it.

    Attributes:
        number: from 0, in the order in which they were given.
        name: of its file.
        records: its cases.
        session: what fwbench recorded of the session; empty if it did not write the run.
        when: when it was measured, as ISO 8601.
        machine: pytest-benchmark's facts of the machine.
        commit: pytest-benchmark's facts of the revision.
        comparison: with a base, where there was one.
        ceilings: of the machine's devices, by device name, where these are known.
        cpu: model of the CPU; None where that is not recorded.
        incompleteness: how many of its cases were measured, if its session did not get to all.
    """

    number: int
    name: str
    records: Sequence[Record]
    session: SessionFacts = field(default_factory=SessionFacts)
    when: str = ""
    machine: MachineInfo = field(default_factory=MachineInfo)
    commit: CommitInfo = field(default_factory=CommitInfo)
    comparison: Comparison | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    cpu: str | None = None
    incompleteness: str = ""

    @cached_property
    def contests(self) -> list[Contest]:
        """The contests of its cases."""
        return contests(
            Timed(record.series, record.median_s, record.facts)
            for record in self.records
            if record.facts
        )

    @cached_property
    def unknown(self) -> list[str]:
        """The keys that mean nothing to this version of fwbench; kept and shown as they are."""
        return unknown_of(self.session, *(record.facts for record in self.records))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.records and not (self.comparison and self.comparison.judgements)

    @property
    def lost(self) -> list[NotMeasured]:
        """The cases that were still to be measured when the session ended."""
        return [missing for missing in self.session.missing or () if missing.why == NOT_REACHED]


def read(path: Path, number: int = 0) -> Run:
    """The run, or the comparison, in a file.

    Args:
        path: what ``--benchmark-json`` wrote, or ``--json`` of ``fwbench ab`` or ``gate``.
        number: of the run, from 0.

    Raises:
        UnreadableRun: it cannot be read, is cut off, or holds a value that is damaged.
    """
    values = parse(path)
    try:
        if isinstance(values, dict) and "judgements" in values:
            return Run(number, path.name, [], comparison=Comparison.from_json(values))
        return _run(from_json(path.name, values, str(path)), number)
    except DamagedFact as error:
        raise UnreadableRun(damaged(str(path), f"its comparison: {error}")) from error


def _run(stored: StoredRun, number: int) -> Run:
    gate = stored.session.gate
    return Run(
        number,
        stored.name,
        [_record(record, number) for record in stored.records],
        stored.session,
        stored.when,
        stored.machine_info,
        stored.commit_info,
        Comparison.of_stored(gate.comparison) if gate is not None and gate.comparison else None,
        ceilings.of_session(stored.session),
        stored.cpu,
        _incompleteness(stored.session, len(stored.records)),
    )


def _incompleteness(session: SessionFacts, measured: int) -> str:
    """How many cases were measured, if the session did not get to all; empty if it did."""
    outcome, planned = session.outcome, session.planned
    if outcome is None:
        ended = "ended in an unknown way" if planned is not None and measured < planned else ""
    elif outcome.interrupted:
        ended = "interrupted"
    else:
        stopped = any(missing.why == NOT_REACHED for missing in session.missing or ())
        ended = "stopped early" if stopped else ""
    if not ended:
        return ""
    if planned is None:
        return f"{ended}: {count(measured, 'case')} measured, others may be missing"
    return f"{ended}: {measured} of {count(planned, 'case')} measured"


def labels(runs: Sequence[Run]) -> list[str]:
    """Names of runs, numbered where several have the same."""
    names = [run.name for run in runs]
    return [
        f"{name} #{names[: number + 1].count(name)}" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


def _record(stored: StoredRecord, number: int) -> Record:
    facts = stored.facts
    asked = {
        name: f"{name}={value}"
        for name, value in stored.params.items()
        if facts and name not in _PARTS
    }
    return Record(
        number,
        stored.param or stored.name,
        stored.group,
        stored.values_s,
        bool(facts.get("launches")),
        facts,
        stored.nodeid,
        stored.stats,
        asked,
    )


def operations(records: Iterable[Record]) -> list[Record]:
    """The records of fwbench's operations, steps and loaders."""
    return [record for record in records if record.facts and not record.epochs]


def trainings(records: Iterable[Record]) -> list[Record]:
    """The records of whole training loops."""
    return [record for record in records if record.epochs]


def foreign(records: Iterable[Record]) -> list[Record]:
    """The records that fwbench did not write."""
    return [record for record in records if not record.facts]


def frameworks(runs: Sequence[Run]) -> list[str]:
    """The frameworks of all runs, those with most cases first."""
    cases = Counter(
        record.facts.framework for run in runs for record in run.records if record.facts
    )
    return [name for name, _ in cases.most_common()]


def have_same_machine(runs: Iterable[Run]) -> bool:
    """Whether all runs with cases are from one model of CPU; ratios between others say nothing."""
    return len({run.cpu for run in runs if run.records}) <= 1
