"""Output of fwbench: a header after the collection, and a section at the end."""

import dataclasses
import os
import re
import shlex
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fwbench import machine
from fwbench.frameworks.unseen import unseen_gpus
from fwbench.plugin import options
from fwbench.plugin.host import RERUN
from fwbench.plugin.plain import is_plain
from fwbench.plugin.session import CELL, Session
from fwbench.processes.session import SELECTOR
from fwbench.records.entry import identity
from fwbench.records.facts import CaseFacts, recorded
from fwbench.records.session_facts import StoredRace
from fwbench.terms.manifest import Manifest
from fwbench.workloads import COPIES
from fwbench.workloads.grid import Cell

if TYPE_CHECKING:
    from fwbench.report.terminal.screen import View
    from fwbench.report.terminal.text import Line

Entry = Mapping[str, Any]

#: Lines of a terminal that are for other things than the table of operations.
_OTHER_LINES = 20


def header(session: Session, *, in_full: bool) -> list[str]:
    """Header for a user before the cases run."""
    isolation = {
        "process": "each framework in a process of its own",
        "none": "all frameworks in this process, where they disturb each other: for "
        f"{session.debugger or 'debugging'}",
    }
    names = ", ".join(session.manifests) or "no framework"
    lines = [f"fwbench: {names}; {isolation[session.options.isolation]}"]
    if session.ignored:
        names, one_process = ", ".join(session.ignored), session.debugger or "--fw-isolation=none"
        lines.append(f"  ignored with {one_process}: {names} of the ini file")
    if session.plan is not None:
        launches, seed = dataclasses.astuple(session.plan)
        least = " at least" if session.options.is_adaptive else ""
        launched = f"every case{least} " + ("once" if launches == 1 else f"{launches} times")
        lines.append(f"  {launched}, each time in a fresh process, shuffled: --fw-seed {seed}")
    for manifest in session.manifests.values():
        if in_full:
            devices = ", ".join(f"{device.name} ({device.model})" for device in manifest.devices)
            threads = "unknown" if manifest.threads is None else str(manifest.threads)
            lines.append(f"  {manifest.name} {manifest.version}: {devices}; threads: {threads}")
        lines += [f"  {notice}" for notice in manifest.notices]
    lines += _without_gpu([*session.manifests.values()])
    missing = [name for name, why in session.absent.items() if why.missing and not in_full]
    if missing:
        lines.append(f"  not installed: {', '.join(missing)} (-v: how to install them)")
    return lines + [
        f"  {name}: absent: {why}" for name, why in session.absent.items() if name not in missing
    ]


def _without_gpu(manifests: Sequence[Manifest]) -> list[str]:
    """The frameworks that could measure a GPU of this machine, and see none, with the remedy."""
    can = [manifest for manifest in manifests if COPIES[0].name in manifest.operations]
    blind = [manifest for manifest in can if not manifest.sees_gpu]
    gpus = machine.gpus() if blind else {"models": []}
    if not gpus["models"]:
        return []
    return [
        f"  {manifest.name} sees no GPU: "
        + (unseen_gpus(manifest, gpus) or "fwbench doctor describes its build")
        for manifest in blind
    ]


def view(reporter: pytest.TerminalReporter) -> "View":
    """Amount of detail on a session's terminal."""
    from fwbench.report.terminal.screen import View

    # pytest takes a terminal of less than 40 columns for one of 80.
    size = shutil.get_terminal_size()
    height = {"height": size.lines - _OTHER_LINES} if reporter.isatty else {}
    return View(
        width=size.columns,
        verbosity=reporter.verbosity,
        skips_listed=reporter.hasopt("s"),
        **height,
    )


class Summary:
    """The hooks that print the header and the section."""

    def __init__(
        self,
        session: Session,
        stored: Callable[[], Path | None] = lambda: None,
        race: Callable[[], StoredRace | None] = lambda: None,
        has_journal: Callable[[], bool] = lambda: True,
    ) -> None:
        self.session = session
        self._stored = stored
        self._race = race
        self._has_journal = has_journal
        self.records: list[Entry] = []
        self.skips: list[str] = []
        self.failed: dict[str, CaseFacts] = {}
        self._cells: dict[str, Cell] = {}
        self._has_plain = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the cell of every case, which a report does not bring."""
        items = (item for item in session.items if CELL in item.stash)
        self._cells = {item.nodeid: item.stash[CELL] for item in items}
        self._has_plain = any(map(is_plain, session.items))

    def pytest_report_collectionfinish(self, config: pytest.Config) -> list[str]:
        """Name the frameworks, and what is missing, with the reason; nothing with ``-q``."""
        verbosity = config.get_verbosity()
        if verbosity < 0 or self.session.problem is not None:
            return []  # an error comes next
        return header(self.session, in_full=verbosity > 0 or config.option.collectonly)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a case brought, or why it was skipped."""
        measured = getattr(report, "fwbench", None)
        if report.outcome == RERUN:
            self.records = [
                record for record in self.records if record["fullname"] != report.nodeid
            ]
        elif report.failed and report.nodeid in self._cells:
            self.failed[report.nodeid] = identity(self._cells[report.nodeid])
        elif measured is not None:
            self.records.append(measured["entry"])
        elif report.skipped and "fwbench" in report.keywords and type(report.longrepr) is tuple:
            _, _, reason = report.longrepr  # of a skip; an xfail has something else there
            self.skips.append(reason.removeprefix("Skipped: "))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """After pytest-benchmark's tables, also when its comparison fails the session."""
        try:
            yield
        finally:
            # Of a launch only what others say of its output is read: why it has measured nothing.
            if not (self.records and terminalreporter.config.pluginmanager.hasplugin(SELECTOR)):
                self._print(terminalreporter)

    def _print(self, reporter: pytest.TerminalReporter) -> None:
        from fwbench.report.terminal.screen import Outcome, screen

        outcome = Outcome(
            self.records,
            self.skips,
            [*self.failed.values()],
            self.session.known_toggles,
            os.cpu_count(),
            str(self.session.traces),
            self.session.revisits,
            _named(self._stored(), reporter.config.invocation_params.dir),
            self._race(),
            has_journal=self._has_journal(),
        )
        lines = screen(outcome, view(reporter))
        if lines:
            reporter.section("fwbench", sep="-", yellow=True)
        for line in lines:
            _write(reporter, line)
        cells = [*self._cells.values()]
        if unheeded := options.unheeded(reporter.config, cells, has_plain=self._has_plain):
            reporter.line(unheeded, yellow=True)


def _named(path: Path | None, here: Path) -> str:
    """A file as a shell in this folder takes it; empty for none.

    Of a saved run the number is enough, and a terminal has room for it.
    """
    if path is None:
        return ""
    if path.is_relative_to(here):
        path = path.relative_to(here)
    number = re.match(r"\d{4}_", path.name)
    if number and path.parent.parent.name == ".benchmarks":
        return f"{shlex.quote(str(path.parent))}/{number[0]}*"
    return shlex.quote(str(path))


def _write(reporter: pytest.TerminalReporter, line: "Line") -> None:
    for span in line:
        reporter.write(span.text, **({span.style: True} if span.style else {}))
    reporter.line("")


#: A name, and rows as pytest-benchmark shows them.
Group = tuple[str | None, list[dict[str, Any]]]


#: pytest-benchmark's options that are about its tables, or about what it prints with them, with
#: their defaults.
_ABOUT_TABLES = {
    **dict.fromkeys(("compare", "compare_fail", "histogram", "cprofile", "columns", "time_unit")),
    "verbose": False,
    "group_by": "group",
    "sort": "min",
}


def are_requested(config: pytest.Config) -> bool:
    """True if tables of cases are to be shown: with ``-v``, and by options that are about them."""
    given = ((config.getoption(f"benchmark_{n}"), usual) for n, usual in _ABOUT_TABLES.items())
    return config.get_verbosity() > 0 or any(value and value != usual for value, usual in given)


class Tables:
    """The hook that groups the rows of pytest-benchmark's tables."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown

    @pytest.hookimpl(wrapper=True)
    def pytest_benchmark_group_stats(
        self, benchmarks: Sequence[dict[str, Any]]
    ) -> Generator[None, list[Group], list[Group]]:
        """Split groups that mix views with copies, and mark rows whose numbers are in doubt."""
        groups = yield
        if not self._shown:
            return _without_cases(groups)
        # What is saved has been written already: these are copies, to be shown.
        for row in benchmarks:
            _mark(row)
        return [part for group in groups for part in _split(*group)]


def _without_cases(groups: Iterable[Group]) -> list[Group]:
    plain = [(name, [row for row in rows if not _facts(row)]) for name, rows in groups]
    return [(name, rows) for name, rows in plain if rows]


def _facts(row: dict[str, Any]) -> CaseFacts:
    return recorded(row["extra_info"].get("fwbench", {}))


def _mark(row: dict[str, Any]) -> None:
    from fwbench.report.condition import marked

    facts = _facts(row)
    if facts and row["path"] is None:  # not of a run to compare with, whose facts are elsewhere
        for name in ("name", "fullname"):
            row[name] = marked(row[name], facts)


def _split(name: str | None, rows: Sequence[dict[str, Any]]) -> list[Group]:
    """The group itself, or its parts where cases of the same work are not to be compared."""
    from fwbench.report.ranking import split

    if not all(map(_facts, rows)):
        return [(name, [*rows])]
    return [(f"{name or ''}{label}" or None, part) for label, part in split(rows, _facts).items()]
