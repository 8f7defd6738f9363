"""Model of a report: runs, read and flattened, from any writer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fwbench import ceilings
from fwbench.ceilings import Ceiling
from fwbench.errors import UnreadableRun, some
from fwbench.gate.verdicts import Comparison
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import (
    FAILED,
    NOT_REACHED,
    NotMeasured,
    SessionFacts,
    StoredExplanation,
    StoredRow,
)
from fwbench.records.stored import StoredRun, damaged, from_json, parse
from fwbench.records.table import DamagedFact
from fwbench.records.units import count
from fwbench.report.ranking import Contest, contests


@dataclass(frozen=True)
class Run(StoredRun):
    """A stored run, or what was said of two sides or a row, with what a report needs beside it."""

    number: int = 0
    comparison: Comparison | None = None
    row: StoredRow | None = None
    explanations: Sequence[StoredExplanation] = ()
    #: Of the machine's devices, by device name, where these are known.
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    incompleteness: str = ""

    @cached_property
    def contests(self) -> list[Contest]:
        """The contests of its cases."""
        return contests(record for record in self.records if record.facts)

    @property
    def threads(self) -> int | None:
        """The number of threads of all of its cases, or that of its session where they differ."""
        used = {record.facts.get("threads") for record in self.records} - {None}
        return used.pop() if len(used) == 1 else self.session.threads

    @property
    def is_measured(self) -> bool:
        """True if it is not a comparison, a row of versions or explanations alone."""
        others = self.comparison or self.row or self.explanations
        return bool(self.records or self.session) or not others

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        judged = self.comparison and self.comparison.judgements
        shown = judged or self.explanations or (self.row and self.row.cases)
        return not self.records and not shown

    @property
    def lost(self) -> list[NotMeasured]:
        """The cases that were still to be measured when the session ended."""
        return [missing for missing in self.session.missing or () if missing.why == NOT_REACHED]

    @property
    def failed(self) -> list[NotMeasured]:
        """The cases that failed."""
        return [missing for missing in self.session.missing or () if missing.why in FAILED]

    @property
    def timeless(self) -> list[NotMeasured]:
        """Both, without those that have a record: a plain test may fail for what it returned."""
        recorded = {record.nodeid for record in self.records}
        return [each for each in (*self.failed, *self.lost) if each.nodeid not in recorded]

    @property
    def shortfalls(self) -> list[str]:
        """Clauses on cases that were to be measured: those not reached, and those that failed."""
        names = [missing.nodeid.rpartition("::")[2] for missing in self.failed]
        failures = f"{count(len(names), 'case')} failed: {some(names)}" if names else ""
        return [*filter(None, [self.incompleteness, failures])]


def read(path: Path, number: int = 0) -> Run:
    """The run, the comparison, the row of versions or the explanations in a file.

    Args:
        path: what ``--benchmark-json`` wrote, or ``--json`` of ``fwbench ab``, ``gate``, ``since``
            or ``explain``.
    """
    return interpreted(parse(path), path, number)


def interpreted(values: object, path: Path, number: int = 0) -> Run:
    """The same of the JSON that a file holds; see :func:`read`."""
    try:
        if isinstance(values, dict) and (judged := _judged(values)):
            return Run(path.name, (), number=number, **judged)
        return _run(from_json(path.name, values, str(path)), number)
    except DamagedFact as error:
        raise UnreadableRun(damaged(str(path), f"its verdicts: {error}")) from error


def _judged(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Judgements of two sides or of a row, as parts of a run; nothing of a run itself."""
    parts: dict[str, Any] = {}
    if "judgements" in values:
        parts["comparison"] = Comparison.from_json(values)
    elif {"row", "versions", "cases"} <= values.keys():
        parts["row"] = StoredRow.checked(values)
    if isinstance(every := values.get("explanations"), list):
        parts["explanations"] = [
            StoredExplanation.checked(each, f"explanations[{n}]") for n, each in enumerate(every)
        ]
    return parts


def _run(stored: StoredRun, number: int) -> Run:
    session, gate = stored.session, stored.session.gate
    records = [replace(record, run=number) for record in stored.records]
    return Run(
        **{**vars(stored), "records": records},
        number=number,
        comparison=Comparison.of_stored(gate.comparison) if gate and gate.comparison else None,
        ceilings=ceilings.of_session(session),
        incompleteness=_incompleteness(session, len(records)),
    )


def _incompleteness(session: SessionFacts, measured: int) -> str:
    """Number of measured cases, if the session did not get to all; empty if it did."""
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


def operations(records: Iterable[Measurement]) -> list[Measurement]:
    """The records of fwbench's operations, steps and loaders."""
    return [record for record in records if record.facts and not record.epochs]


def trainings(records: Iterable[Measurement]) -> list[Measurement]:
    """The records of whole training loops."""
    return [record for record in records if record.epochs]


def foreign(records: Iterable[Measurement]) -> list[Measurement]:
    """The records that fwbench did not write."""
    return [record for record in records if not record.facts]


def frameworks(runs: Sequence[Run]) -> list[str]:
    """The frameworks of all runs, in the order in which they are shown everywhere."""
    return sorted({r.facts.framework for run in runs for r in run.records if r.facts})


def have_same_machine(runs: Iterable[Run]) -> bool:
    """True if all runs with cases are from one model of CPU; ratios between others say nothing."""
    return len({run.cpu for run in runs if run.records}) <= 1
