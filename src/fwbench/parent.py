"""What only the parent process does: header, isolation, journal, safe storage, summary."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark import __version__ as benchmark_version

from fwbench import __version__, environment, grid, record
from fwbench.errors import FwbenchError, StorageError
from fwbench.isolation import handover
from fwbench.isolation.parent import Workers
from fwbench.isolation.worker import Session as WorkerSession
from fwbench.report import terminal
from fwbench.session import CELL, Session, benchmark_session


class Parent:
    """The hooks of the process that the user started."""

    def __init__(self, config: pytest.Config, session: Session) -> None:
        self.config = config
        self.session = session
        self.benchmarks: Any = benchmark_session(config)
        self.workers: Workers | None = None
        self.journal: record.Journal | None = None
        self.storage_problems: list[str] = []
        self.records: list[dict[str, Any]] = []
        self.gaps: list[grid.Cell] = []
        self.following: dict[str, str | None] = {}

    # Before anything runs

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse what could not end well, while nothing has been measured yet.

        Raises:
            UsageError: a debugger without a terminal, or a file that cannot be written.
        """
        cells = [item for item in items if CELL in item.stash]
        if not cells or self.config.option.collectonly:
            return
        if self.session.isolated:
            self._refuse_debuggers()
        if not self.session.verify_only:
            self._prepare_storage()

    def _refuse_debuggers(self) -> None:
        for flag, given in (("--pdb", "usepdb"), ("--trace", "trace")):
            if self.config.getoption(given):
                raise pytest.UsageError(
                    f"{flag} needs the frameworks in this process, where the terminal is: "
                    "add --fw-isolation=none"
                )

    def _prepare_storage(self) -> None:
        """Find out before the first measurement whether its record can be kept."""
        if self.benchmarks.json:
            try:
                record.check_writable(Path(self.benchmarks.json))
            except StorageError as error:
                raise pytest.UsageError(f"--benchmark-json: {error}") from None
        self.benchmarks.save_json = self._save_json
        self.benchmarks.storage.save = partial(self._save, self.benchmarks.storage.save)

    def pytest_report_collectionfinish(self) -> list[str]:
        """Name the frameworks: version, devices, threads; and what is missing, with the reason."""
        return terminal.header(self.session)

    # Isolation

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Know which case each worker gets next: it decides which of its fixtures stay."""
        latest: dict[str, str] = {}
        for item in reversed(session.items):
            cell = item.stash.get(CELL, None)
            if cell is not None and not self._is_local(item):
                self.following[item.nodeid] = latest.get(cell.framework)
                latest[cell.framework] = item.nodeid

    def _is_local(self, item: pytest.Item) -> bool:
        """Whether an item runs in this process: because it is no case, or would only be skipped."""
        return (
            CELL not in item.stash
            or not self.session.isolated
            or item.get_closest_marker("skip") is not None
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run a case in its framework's worker."""
        if CELL in item.stash and item.stash[CELL].gap:
            self.gaps.append(item.stash[CELL])
        if self._is_local(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _reports(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        if self.workers is None:
            self.workers = Workers(
                partial(self._worker_session, item.session),
                self.session.options.threads,
                inherit_output=self.config.option.capture == "no",
            )
        timeout_s = self.session.options.timeout_s
        when = "call"
        try:
            for kind, values in self.workers.run(
                item.stash[CELL].framework, item.nodeid, self.following[item.nodeid], timeout_s
            ):
                if kind == "warning":
                    self._warn(values)
                    continue
                report = self.config.hook.pytest_report_from_serializable(
                    config=self.config, data=values
                )
                # What dies after the call has passed is an error of the teardown.
                when = "teardown" if report.when != "setup" else "call"
                yield report
        except FwbenchError as error:
            yield pytest.TestReport(
                nodeid=item.nodeid,
                location=item.location,
                keywords=dict.fromkeys(item.keywords, 1),
                outcome="failed",
                longrepr=str(error),
                when=when,  # type: ignore[arg-type]
            )

    def _worker_session(self, session: pytest.Session, framework: str) -> WorkerSession:
        files = {
            str(item.path): None
            for item in session.items
            if CELL in item.stash and item.stash[CELL].framework == framework
        }
        return handover.worker_session(self.config, list(files), self.session.manifests[framework])

    def _warn(self, values: dict[str, Any]) -> None:
        """Hand on a worker's warning as if it had been raised here."""
        module, name = values["category"]
        try:
            category = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            category = UserWarning  # a framework's own; its module is not imported here
        message = warnings.WarningMessage(
            category(values["message"]), category, values["filename"], values["lineno"]
        )
        self.config.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": message,
                "when": "runtest",
                "nodeid": values["nodeid"],
                "location": values["location"],
            }
        )

    def pytest_keyboard_interrupt(self) -> None:
        """Leave no process behind."""
        if self.workers is not None:
            self.workers.kill()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Let the workers tear down what they have set up."""
        if self.workers is not None:
            self.workers.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """End what is left, however the session ended."""
        if self.workers is not None:
            self.workers.kill()
        if self.journal is not None:
            self.journal.close()

    # Records

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record that a report brought."""
        values = getattr(report, "fwbench", None)
        if values is None:
            return
        if self.session.isolated:
            self.benchmarks.benchmarks.append(record.restore(values))
        self.records.append(values["entry"])
        self._journal(values["entry"])

    def _journal(self, entry: dict[str, Any]) -> None:
        if self.storage_problems:
            return
        try:
            if self.journal is None:
                self.journal = self._begin_journal()
            self.journal.append(entry)
        except StorageError as error:
            self.storage_problems.append(
                f"{error}; should this session crash, records are lost from here on"
            )

    def _begin_journal(self) -> record.Journal:
        now = datetime.now(UTC)
        journal = record.Journal(
            record.journal_folder(self.config.rootpath),
            f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.jsonl",
        )
        hook = self.config.hook
        commit_info = hook.pytest_benchmark_generate_commit_info(config=self.config)
        hook.pytest_benchmark_update_commit_info(config=self.config, commit_info=commit_info)
        journal.append(
            {
                "fwbench_journal": record.SCHEMA,
                "machine_info": self.benchmarks.get_machine_info(),
                "commit_info": commit_info,
                "datetime": now.isoformat(),
                "version": benchmark_version,
                "fwbench": self._surroundings(),
            }
        )
        return journal

    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> None:
        """Add what was measured, on what, and what could not be."""
        output_json["fwbench"] = self._surroundings()

    def _surroundings(self) -> dict[str, Any]:
        options = self.session.options
        return {
            "version": __version__,
            "schema": record.SCHEMA,
            "machine": environment.machine(),
            "threads": options.threads,
            "isolation": options.isolation,
            "frameworks": {n: m.to_json() for n, m in self.session.manifests.items()},
            "absent": {name: str(why) for name, why in self.session.absent.items()},
        }

    # Storage: pytest-benchmark truncates a file before it writes it, so that a full disk costs the
    # earlier one, too.

    def _save_json(self, output_json: dict[str, Any]) -> None:
        path = Path(self.benchmarks.json)
        try:
            record.write_atomically(path, record.dumps(output_json))
        except StorageError as error:
            self._storage_failed("--benchmark-json", error)
        else:
            self.benchmarks.logger.info(f"Wrote benchmark data in: {path}", purple=True)  # noqa: G004

    def _save(self, save: Any, output_json: dict[str, Any], name: str) -> None:
        storage = self.benchmarks.storage
        before = {*storage.query()}
        try:
            save(output_json, name)
        except OSError as error:
            for unfinished in {*storage.query()} - before:
                unfinished.unlink(missing_ok=True)
            problem = StorageError(f"cannot write under {storage}: {error.strerror}")
            self._storage_failed("--benchmark-save", problem)

    def _storage_failed(self, option: str, error: StorageError) -> None:
        hint = "earlier files are as they were"
        if self.journal is not None:
            hint += f"; the records are in {self.journal.path}: fwbench recover writes them out"
        self.storage_problems.append(f"{option}: {error}; {hint}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """After pytest-benchmark's tables, also when its comparison fails the session."""
        try:
            yield
        finally:
            terminal.summarize(terminalreporter, self.records, self.gaps, self.storage_problems)
