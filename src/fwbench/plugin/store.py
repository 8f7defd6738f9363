"""Keeps records safe: the journal while a session runs, whole files when it ends."""

import contextlib
import dataclasses
import hashlib
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fwbench import ceilings
from fwbench.errors import StorageError
from fwbench.jsontext import dumps
from fwbench.plugin import host
from fwbench.plugin.host import RERUN, BenchmarkSession
from fwbench.plugin.options import asked_for
from fwbench.plugin.plain import known_variables, of_process, outcome_of, reason
from fwbench.plugin.session import CELL, UNASKED, Session
from fwbench.processes.session import JOURNAL_VARIABLE
from fwbench.records import equality, files
from fwbench.records.facts import SCHEMA, CaseFacts
from fwbench.records.journal import ASKED, KEY, Journal, journal_folder
from fwbench.records.launches import Entry, LaunchPlan
from fwbench.records.privacy import Places, without_host
from fwbench.records.session_facts import (
    DESELECTED,
    NOT_REACHED,
    SKIPPED,
    NotMeasured,
    SessionFacts,
    SessionOutcome,
    StoredGate,
    StoredManifest,
    StoredPlan,
)
from fwbench.records.stored import damaged, just_measured, record_of
from fwbench.records.table import DamagedFact
from fwbench.records.units import count
from fwbench.version import __version__
from fwbench.workloads.grid import Cell


class Store:
    """The hooks through which records reach the disk."""

    def __init__(self, config: pytest.Config, session: Session, unmeasured: "Unmeasured") -> None:
        self.config = config
        self.session = session
        self.unmeasured = unmeasured
        self.gate: StoredGate | None = None
        self.launched = SessionFacts()
        self.outcome: SessionOutcome | None = None  # once the session ends
        self.variables: dict[str, str] | None = None
        self.written: Path | None = None  # the first file that has all records
        self.benchmarks = BenchmarkSession(config)
        self.journal: Journal | None = None
        self.problems: list[str] = []
        #: The launches of which the journal has records, by node id; None without launches.
        self._kept: dict[str, set[int | None]] = defaultdict(set)
        self._has_record = self._is_cut_short = False
        self._seen = 0  # benchmarks whose entries are in the journal, or are on their way

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find out before the first measurement whether its record can be kept, and compared."""
        self.variables = known_variables()  # before a test changes some
        cases = any(CELL in item.stash for item in items)
        if not cases or self.config.option.collectonly or self.session.verify_only:
            return
        self._refuse_other_data([item.stash[CELL] for item in items if CELL in item.stash])
        self.benchmarks.check_writable()
        # pytest-benchmark empties a file before it writes it: a full disk would cost the earlier
        # one, too.
        self.benchmarks.replace_writers(self._write_json, self._saved, self._unsaved)

    def _refuse_other_data(self, cells: list[Cell]) -> None:
        trained = {_same(cell.params): cell for cell in cells if cell.data and not cell.gap}
        for file, entries in self.benchmarks.compared:
            for entry in entries:
                data = _compared(file, entry).data
                cell = trained.get(_same(entry.get("params"))) if data else None
                if data and cell and cell.data and cell.data.source != data.source:
                    raise pytest.UsageError(
                        f"--benchmark-compare: {file} has {entry['param']} on "
                        f"{data.source} data, here it would be {cell.data.source} "
                        f"{cell.data.name}: their times do not compare. Give both the same data "
                        "(--fw-data), or leave these cases out (-k)"
                    )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Begin the journal: one without a record says that its session left none."""
        timed = not (self.config.option.collectonly or self.session.verify_only)
        if timed and self.unmeasured.planned:
            self._write(lambda _: None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append the record that a report brought to the journal."""
        if report.outcome == RERUN:
            self.benchmarks.remove(report.nodeid)
        measured = getattr(report, "fwbench", None)
        # The launches of a case have come one by one, and what is resumed at once.
        if measured is not None and self.session.plan is None and "journaled" not in measured:
            self._append(measured["entry"])
        plain, self._seen = self.benchmarks.plain_entries(self._seen)
        for entry in plain:
            self._append(entry)
        if not report.passed and report.nodeid in self._kept:
            del self._kept[report.nodeid]
            (nodeid,) = self._private({"fullname": report.nodeid}).values()
            self._write(lambda journal: journal.mark_not_passed(nodeid))

    def pytest_fwbench_launched(self, entry: Mapping[str, Any] | None) -> None:
        """Append the record of a launch."""
        if entry is not None:
            self._append(entry)

    def take_over(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append the records of an earlier session, which this one goes on with.

        All or none: a journal with a part of them would be the newest, and hide the earlier one.
        """
        for entry in entries:
            self._append(entry)
        if self.problems and self.journal is not None:
            self.journal.discard()
            self.journal = None

    def _append(self, entry: Mapping[str, Any]) -> None:
        self._has_record = True
        self._write(lambda journal: journal.append(self._private(entry)))
        launch = entry["extra_info"].get("fwbench", {}).get("launch")
        self._kept[entry["fullname"]].add(launch)

    def _write(self, write: Callable[[Journal], None]) -> None:
        if self.problems:
            return
        try:
            if self.journal is None:
                self.journal = self._begin_journal()
            write(self.journal)
        except StorageError as error:
            self.problems.append(
                f"{error}; without --benchmark-json no record is kept from here on"
            )

    def _begin_journal(self) -> Journal:
        head = self.head()  # which takes a second: a journal is not to lie there without it
        journal = Journal(
            Path(os.environ.get(JOURNAL_VARIABLE) or journal_folder(self.config.rootpath)),
            # To the microsecond: the newest one is found by its name.
            f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.jsonl",
        )
        try:
            journal.append(head)
        except StorageError:
            journal.close()
            raise
        return journal

    def head(self) -> Mapping[str, Any]:
        """The first line of a journal of this session."""
        asked = asked_for(self.config, self.session.options)
        return self._private(
            {
                "fwbench_journal": SCHEMA,
                KEY: hashlib.sha256(repr(asked).encode()).hexdigest(),
                ASKED: asked,
                "machine_info": self.benchmarks.machine_info(),
                "commit_info": self.benchmarks.commit_info(),
                "datetime": datetime.now(UTC).isoformat(),
                "version": host.version,
                "fwbench": dict(self.session_facts() | SessionFacts(variables=self.variables)),
            }
        )

    @pytest.hookimpl(trylast=True)  # what others add has paths, too
    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> None:
        """Add what was measured, on what, and what could not be."""
        from fwbench.report import races, ranking, training

        ceilings.annotate(output_json["benchmarks"], self.session.ceilings)
        known = self.session.known_toggles
        equality.annotate(output_json["benchmarks"], known)
        entries = output_json["benchmarks"]
        cases = [just_measured(entry, self.session.revisits) for entry in entries]
        ended = of_process() | self._ended({entry["fullname"] for entry in entries})
        by_medians = ranking.answers(ranking.contests(c for c in cases if c.facts))
        by_race = races.race_answer(self.launched.race)
        ended |= SessionFacts(
            fastest={"race": by_race}
            if by_race
            else {f"{answer.kind}, {answer.device}": answer.text for answer in by_medians},
            loss_curves=training.loss_curves(cases, known),
            break_even=training.break_even(cases, known),
        )
        output_json["fwbench"] = dict(self.session_facts() | self.launched | ended)
        output_json.update(self._private(output_json))

    def _ended(self, measured: Collection[str]) -> SessionFacts:
        """Facts of the session that are known at its end only; the node ids of what it measured."""
        return SessionFacts(
            outcome=self.outcome,
            missing=self.unmeasured.facts(measured),
            gate=self.gate,
            revisits=self.session.revisits or None,
        )

    def _private(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values for JSON, without absolute paths unless these are requested."""
        if self.session.options.record_host:
            return values
        return Places(self.config.rootpath).without_paths(values)

    def pytest_benchmark_update_machine_info(self, machine_info: dict[str, Any]) -> None:
        """Leave out the name of the machine unless it is asked for."""
        if not self.session.options.record_host:
            machine_info.update(without_host(machine_info))

    def session_facts(self) -> SessionFacts:
        """Facts of the session in addition to its records, before it ends."""
        options, plan = self.session.options, self.session.plan
        places, given = Places(self.config.rootpath), self.config.invocation_params
        return SessionFacts(
            version=__version__,
            schema=SCHEMA,
            machine=self.session.machine,
            ceilings=ceilings.to_json(self.session.ceilings),
            threads=options.threads,
            isolation=options.isolation,
            arguments=places.command_line([*map(str, given.args)], given.dir),
            launches=None if plan is None else StoredPlan(**dataclasses.asdict(plan)),
            frameworks={
                name: StoredManifest.unchecked(manifest.to_json())
                for name, manifest in self.session.manifests.items()
            },
            absent={name: str(why) for name, why in self.session.absent.items()},
            planned=len(self.unmeasured.planned),
            missing=self.unmeasured.facts(),
        )

    def _write_json(self, path: Path, output_json: dict[str, Any]) -> None:
        try:
            files.write_atomically(path, dumps(output_json, indent=4))
        except StorageError as error:
            self._failed("--benchmark-json", error)
        else:
            self.benchmarks.say(f"Wrote benchmark data in: {path}")
            self._saved(path)

    def _saved(self, path: Path) -> None:
        self.written = self.written or path

    def _unsaved(self, storage: str, error: OSError) -> None:
        problem = StorageError(f"cannot write under {storage}: {error.strerror}")
        self._failed("--benchmark-save", problem)

    def _failed(self, option: str, error: StorageError) -> None:
        hint = "earlier files are as they were"
        if self.journal is not None:
            hint += f"; the records are in {self.journal.path}: fwbench recover writes them out"
        self.problems.append(f"{option}: {error}; {hint}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own last line
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Do not let a session end well whose records could not be saved; say so last of all."""
        self.outcome = outcome_of(session)
        self._is_cut_short = self.outcome.interrupted or bool(session.shouldfail)
        try:
            yield
        finally:
            if any(problem.startswith("--") for problem in self.problems):
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
            reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
            for problem in [*self.problems, *self._unfinished()] if reporter is not None else ():
                reporter.line(f"fwbench: {problem}", red=True)

    def _unfinished(self) -> list[str]:
        """Say of a session that was cut short what was kept, and how to go on."""
        if self.journal is None or not self._has_record or self.problems or self.outcome is None:
            return []
        # It may be the journal of whoever started this session.
        if not self._is_cut_short or JOURNAL_VARIABLE in os.environ:
            return []
        go_on = "the same command with --fw-resume measures the others, "
        go_on *= bool(self._number_kept) and not self.session.options.is_adaptive
        how = f"{go_on}fwbench recover writes them to a file"
        ended = "interrupted" if self.outcome.interrupted else "stopped early"
        planned, is_adaptive = len(self.unmeasured.planned), self.session.options.is_adaptive
        share = _share(self._number_kept, planned, self.session.plan, is_adaptive=is_adaptive)
        return [f"{ended}; {share} are kept in {self.journal.path}: {how}"]

    @property
    def _number_kept(self) -> int:
        """Records that another session can go on with; with launches those of cases alone."""
        every = itertools.chain(*self._kept.values())
        return sum(self.session.plan is None or launch is not None for launch in every)

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """Close the journal, however the session ended."""
        if self.journal is None:
            return
        with contextlib.suppress(StorageError):
            if self.outcome is not None:
                self.journal.complete(self._private(dict(self._ended(self._kept))))
                is_safe = not self.problems and not self.outcome.interrupted
                is_safe &= self.written is not None or not self._is_cut_short
                if is_safe or not self._has_record:
                    self.journal.finish(resumable=self._is_cut_short)
        self.journal.close()


def _share(kept: int, planned: int, plan: LaunchPlan | None, *, is_adaptive: bool) -> str:
    """Number of planned cases, or of their launches, and of those that are kept."""
    cases = count(planned, "case")
    if plan is None:
        return f"{kept} of {cases}"
    if is_adaptive:  # nobody knows how many there would have been
        return f"{count(kept, 'launch', 'launches')} of {cases}"
    launches = count(plan.launches * planned, "launch", "launches")
    return f"{kept} of {launches} of {cases}"


def _compared(name: str, entry: Entry) -> CaseFacts:
    """The facts of a record in a run that ``--benchmark-compare`` names."""
    try:
        return record_of(entry, "a benchmark").facts
    except DamagedFact as error:
        raise pytest.UsageError(f"--benchmark-compare: {damaged(name, error)}") from None


def _same(params: Mapping[str, Any] | None) -> frozenset[tuple[str, str]]:
    """Key of records of the same case."""
    return frozenset((name, str(value)) for name, value in (params or {}).items())


class Unmeasured:
    """The hooks that see benchmarks go."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}
        self.planned: list[str] = []
        self._cells: dict[str, Cell | None] = {}
        self._finished: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Remember the cell of every case that is left; other benchmarks have none."""
        self._know(items)
        self.planned = [
            item.nodeid
            for item in items
            if item.nodeid in self._cells and item.get_closest_marker("skip") is None
        ]

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember what ``-k``, ``-m``, ``--deselect`` or a plugin left out.

        Operations that represent no family are thousands, and none of them was asked for.
        """
        items = [item for item in items if UNASKED not in item.stash]
        self._know(items)
        for item in items:
            if "benchmark" in getattr(item, "fixturenames", ()):
                self.why[item.nodeid] = DESELECTED

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember why a benchmark was skipped or failed."""
        if report.outcome == RERUN:
            return
        if report.when == "teardown":
            self._finished.add(report.nodeid)
        if report.nodeid in self._cells and (why := reason(report)) is not None:
            self.why[report.nodeid] = why

    def facts(self, measured: Collection[str] | None = None) -> list[NotMeasured]:
        """Each benchmark that was not measured, for the record of the session.

        Args:
            measured: the node ids of those that were, once the session has ended; the others have
                not been reached then.
        """
        why = dict(self.why)
        if measured is not None:
            gone = {*why, *measured, *self._finished}
            why |= {nodeid: NOT_REACHED for nodeid in self.planned if nodeid not in gone}
        return [self._fact(nodeid, text) for nodeid, text in why.items()]

    def _fact(self, nodeid: str, reason: str) -> NotMeasured:
        cell = self._cells.get(nodeid)
        if cell is None:
            return NotMeasured(nodeid=nodeid, framework="", why=reason)
        if not reason.startswith(SKIPPED):
            return NotMeasured(nodeid=nodeid, framework=cell.framework, why=reason)
        return NotMeasured(nodeid=nodeid, framework=cell.framework, params=cell.params, why=reason)

    def _know(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            cell = item.stash.get(CELL, None)
            if cell is not None or "benchmark" in getattr(item, "fixturenames", ()):
                self._cells[item.nodeid] = cell
