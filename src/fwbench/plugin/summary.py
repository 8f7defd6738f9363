"""What fwbench prints: the header after the collection, one section after the tables."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import pytest

from fwbench.plugin.session import Session
from fwbench.report.terminal import header, section

Entry = Mapping[str, Any]


class Summary:
    """The hooks that print."""

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
        if measured is not None:
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
            lines = section(self.records, self.skips)
            if lines:
                terminalreporter.section("fwbench", sep="-", yellow=True)
            for line in lines:
                terminalreporter.line(line)
