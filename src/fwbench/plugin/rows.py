"""Rows: cases of a session that do the same work are alive together, and measured by turns."""

import random
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import psutil
import pytest

from fwbench.measure.condition import of_rounds
from fwbench.measure.resources import OtherProcesses
from fwbench.plugin.gangs import is_cold
from fwbench.plugin.session import CELL, Session
from fwbench.processes import scratch
from fwbench.records.entry import least_bytes
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count, duration
from fwbench.turns import visits
from fwbench.workers.pool import Turns
from fwbench.workloads.grid import Cell
from fwbench.workloads.model import ModelInference, ModelTraining

#: More would wait for each other too long.
_CONTESTANTS_AT_MOST = 8

#: What a process with a framework takes, TensorFlow with a small network; and how often a case has
#: its operands and results: in several sets, in float64, and for the reference.
_PROCESS_BYTES, _COPIES = 0.7 * 2**30, 8


class Rows:
    """Rows of the cases of a session."""

    def __init__(self, cases: Sequence[pytest.Item] = ()) -> None:
        #: Cases that could have been in a row and did not fit into memory together.
        self.apart = 0
        self._rows: dict[pytest.Item, list[pytest.Item]] = {}
        self._numbers: dict[pytest.Item, int] = {}
        numbers: dict[str, dict[Any, int]] = defaultdict(dict)
        rows: dict[str, dict[tuple[str, int], pytest.Item]] = defaultdict(dict)
        for item in cases:
            cell = item.stash[CELL]
            of_framework = numbers[cell.framework]
            number = of_framework.setdefault((cell.execution, cell.toggles), len(of_framework))
            row = rows[cell.group]
            if max(number, len(row)) < _CONTESTANTS_AT_MOST:
                # The second of two that need the same worker takes no turns.
                self._numbers[row.setdefault((cell.framework, number), item)] = number
        for together in map(list, map(dict.values, rows.values())):
            if len(together) == 1 or _fit(together):
                self._rows |= dict.fromkeys(together, together)
            else:
                self.apart += len(together)

    def of(self, item: pytest.Item) -> Sequence[pytest.Item]:
        """The row of a case, itself included; alone if it takes no turns."""
        return self._rows.get(item, [item])

    def number(self, item: pytest.Item) -> int:
        """Tells workers of a framework apart, since executions take turns with each other, too."""
        return self._numbers.get(item, 0)

    def among(self, cases: Sequence[pytest.Item]) -> list[Sequence[pytest.Item]]:
        """The rows of cases in the order in which they are measured: with their first case."""
        return [*{id(row): row for row in map(self.of, cases)}.values()]


def take_turns(item: pytest.Item) -> bool:
    """True if a case can take turns with others of its row.

    Not on GPUs, where each process would hold its part; nor whole trainings, cases of several
    processes, cases that must be the first of theirs, and models that are compared as they come.
    """
    cell = item.stash[CELL]
    single = cell.device == "cpu" and not cell.gang and cell.toggle("workers") == "0"
    is_whole = bool(cell.schedule) or cell.workload.name == "noop" or is_cold(item)
    limited = item.get_closest_marker("timeout") is not None
    return single and not (is_whole or limited or has_several_versions(cell))


def has_several_versions(cell: Cell) -> bool:
    """True if a model has versions of several frameworks, which are compared as they come."""
    workload = cell.workload
    if not isinstance(workload, ModelInference | ModelTraining):
        return False
    return len(workload.model.versions) > 1


def rows_of(session: Session, config: pytest.Config, cases: Sequence[pytest.Item]) -> Rows:
    """The rows of a session; none where nothing is timed, or each case has limits of its own.

    Nor where several threads compute: what a call of MXNet's or TensorFlow's takes then depends on
    where they are when it begins, and after a pause they are elsewhere (docs/figures.md).
    """
    limited = bool(getattr(config, "_env_timeout", None))  # by pytest-timeout, which cannot wait
    if session.verify_only or visits.are_taken() or limited or session.options.threads > 1:
        return Rows()
    rows = Rows([item for item in cases if take_turns(item)])
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if rows.apart and reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(
            f"fwbench: {count(rows.apart, 'case')} take no turns with others that do the same "
            "work: together they would not fit into the memory that is free"
        )
    return rows


def _fit(row: Sequence[pytest.Item]) -> bool:
    least = (least_bytes(item.stash[CELL]) or 0.0 for item in row)
    needed_bytes = sum(_PROCESS_BYTES + _COPIES * each for each in least)
    return bool(needed_bytes <= psutil.virtual_memory().available)


class RowSession:
    """A case of a row as the referee sees it, while its worker runs it.

    Args:
        coming: its reports, and None where nothing has come yet.
        fileno: the descriptor of its worker.
    """

    def __init__(
        self, coming: Iterator[pytest.TestReport | None], fileno: Callable[[], int]
    ) -> None:
        self._coming = coming
        self.fileno = fileno
        self.reports: list[pytest.TestReport] = []

    def has_ended(self) -> bool:
        """Take the reports that have come; True if these were the last."""
        for report in self._coming:
            if report is None:
                return False
            self.reports.append(report)
        return True


Begin = Callable[[pytest.Item, Turns], RowSession]


def measure(
    row: Sequence[pytest.Item],
    begin: Begin,
    max_time_s: float,
    results: dict[str, Any],
    say: Callable[[str], object],
) -> None:
    """Measure the cases of a row by turns.

    Args:
        begin: begins a case in its worker.
        max_time_s: how long the visits of each may take, if they are enough.
        results: the reports by node id, which are put here as they come, whatever happens.
        say: hears every minute which cases the others wait for.
    """

    def tell(sides: Sequence[int], _: str, for_s: float) -> None:
        cases = " and ".join(row[side].nodeid for side in sides)
        say(f"at {cases} for {duration(for_s)}; a case that hangs is ended by --fw-timeout")

    from fwbench.turns.referee import Referee, row_effort

    others = OtherProcesses(siblings=False)
    with scratch.folder() as folder:
        seed = random.randrange(10**6)  # noqa: S311 (no secret)
        effort = row_effort(max_time_s, others)
        referee = Referee(folder, len(row), effort, seed, row=True, tell=tell)
        sessions = [begin(item, _turns(referee, side)) for side, item in enumerate(row)]
        results |= {i.nodeid: s.reports for i, s in zip(row, sessions, strict=True)}
        referee.serve(sessions)
    medians_s: dict[int, list[float]] = {}
    if seen := referee.contests.get(""):
        medians_s = dict(zip(seen.sides, seen.medians_s().tolist(), strict=True))
    name = uuid.uuid4().hex  # of no other session's row: only visits of the same one are adjacent
    for side, session in enumerate(sessions):
        for report in session.reports:
            report.duration /= len(row)  # most of it each has waited for others
            _note(report, others, name, medians_s.get(side, []))


def _turns(referee: Any, side: int) -> Turns:
    waits, waited_s = partial(referee.waits, side), partial(referee.waited_s, side)
    return Turns(referee.place(side), waits, waited_s)


def _note(
    report: pytest.TestReport, others: OtherProcesses, row: str, visits_s: Sequence[float]
) -> None:
    """Note in the record of a case its visits, and what ran beside all of the row's."""
    record: Mapping[str, Any] | None = getattr(report, "fwbench", None)
    if record is None or not visits_s:
        return
    entry = record["entry"]
    facts = entry["extra_info"]["fwbench"]
    facts |= {"turns": {"row": row, "visits_s": visits_s}, "siblings_cpus": 0.0}
    facts |= {"others_cpus": others.cpus, "idle_cpus": others.idle_cpus}
    facts["condition"] = of_rounds(entry["stats"]["data"], CaseFacts.unchecked(facts))
