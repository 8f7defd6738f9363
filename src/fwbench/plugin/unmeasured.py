"""Remembers which benchmarks were not measured, and why: nothing goes missing in silence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fwbench.plugin.session import CELL
from fwbench.records.session_facts import NotMeasured


class Unmeasured:
    """The hooks that see benchmarks go.

    Attributes:
        why: the reason, by node id.
    """

    def __init__(self) -> None:
        self.why: dict[str, str] = {}
        self._frameworks: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Remember the framework of every case that is left."""
        self._know(items)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember what ``-k``, ``-m``, ``--deselect`` or a plugin left out."""
        self._know(items)
        for item in items:
            if "benchmark" in getattr(item, "fixturenames", ()):
                self.why[item.nodeid] = "deselected"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember why a benchmark was skipped or failed."""
        if report.nodeid not in self._frameworks or report.passed:
            return
        if report.skipped and type(report.longrepr) is tuple:
            reason = report.longrepr[2].removeprefix("Skipped: ")
            self.why[report.nodeid] = f"skipped: {reason}"
        else:
            self.why[report.nodeid] = f"{report.when} failed" if report.failed else "skipped"

    def facts(self) -> list[NotMeasured]:
        """Each benchmark that was not measured, for the record of the session."""
        return [
            NotMeasured(nodeid=nodeid, framework=self._frameworks.get(nodeid, ""), why=why)
            for nodeid, why in self.why.items()
        ]

    def _know(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            cell = item.stash.get(CELL, None)
            if cell is not None:
                self._frameworks[item.nodeid] = cell.framework
            elif "benchmark" in getattr(item, "fixturenames", ()):
                self._frameworks[item.nodeid] = ""
