"""What fwbench prints: the header after the collection, one section after the tables."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Generator, Mapping
from typing import Any

import pytest

from fwbench.plugin.neighbours import RERUN
from fwbench.plugin.session import Session
from fwbench.records.units import count
from fwbench.report.terminal import section

Entry = Mapping[str, Any]


def header(session: Session) -> list[str]:
    """One line for the session and one for each framework."""
    options = session.options
    isolation = {
        "process": "each framework in a process of its own",
        "none": "all frameworks in this process, where they disturb each other: for "
        f"{session.debugger or 'debugging'}",
    }
    lines = [f"fwbench: {count(options.threads, 'thread')}; {isolation[options.isolation]}"]
    if session.plan is not None:
        launches, seed = dataclasses.astuple(session.plan)
        each = "every case once" if launches == 1 else f"every case {launches} times"
        lines.append(f"  {each}, each time in a fresh process, shuffled: --fw-seed {seed}")
    for manifest in session.manifests.values():
        devices = ", ".join(f"{device.name} ({device.model})" for device in manifest.devices)
        threads = "unknown" if manifest.threads is None else str(manifest.threads)
        lines.append(f"  {manifest.name} {manifest.version}: {devices}; threads: {threads}")
        lines += [f"    {notice}" for notice in manifest.notices]
    lines += [f"  {name}: absent: {why}" for name, why in session.absent.items()]
    return lines


class Summary:
    """The hooks that print the header and the section.

    Args:
        session: of fwbench.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.records: list[Entry] = []
        self.skips: list[str] = []

    def pytest_report_collectionfinish(self) -> list[str]:
        """Name the frameworks: version, devices, threads; and what is missing, with the reason."""
        return header(self.session)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a case brought, or why it was skipped."""
        measured = getattr(report, "fwbench", None)
        if report.outcome == RERUN:
            self.records = [each for each in self.records if each["fullname"] != report.nodeid]
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
            lines = section(self.records, self.skips, self.session.known_toggles, os.cpu_count())
            if lines:
                terminalreporter.section("fwbench", sep="-", yellow=True)
            for line in lines:
                terminalreporter.line(line)
