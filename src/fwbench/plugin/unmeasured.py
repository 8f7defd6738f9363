"""Remembers which benchmarks were not measured, and why: nothing goes missing in silence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from fwbench.plugin.neighbours import RERUN
from fwbench.plugin.session import CELL, UNASKED
from fwbench.records.session_facts import NOT_REACHED, NotMeasured


class Unmeasured:
    """The hooks that see benchmarks go.

    Attributes:
        why: the reason, by node id.
        planned: the node ids of those that are to be measured.
    """

    def __init__(self) -> None:
        self.why: dict[str, str] = {}
        self.planned: list[str] = []
        self._frameworks: dict[str, str] = {}
        self._finished: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Remember the framework of every case that is left."""
        self._know(items)
        self.planned = [
            item.nodeid
            for item in items
            if item.nodeid in self._frameworks and item.get_closest_marker("skip") is None
        ]

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember what ``-k``, ``-m``, ``--deselect`` or a plugin left out.

        Operations that represent no family are thousands, and none of them was asked for.
        """
        items = [item for item in items if UNASKED not in item.stash]
        self._know(items)
        for item in items:
            if "benchmark" in getattr(item, "fixturenames", ()):
                self.why[item.nodeid] = "deselected"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember why a benchmark was skipped or failed."""
        if report.outcome == RERUN:
            return
        if report.when == "teardown":
            self._finished.add(report.nodeid)
        if report.nodeid not in self._frameworks or report.passed:
            return
        if report.skipped and type(report.longrepr) is tuple:
            reason = report.longrepr[2].removeprefix("Skipped: ")
            self.why[report.nodeid] = f"skipped: {reason}"
        else:
            self.why[report.nodeid] = f"{report.when} failed" if report.failed else "skipped"

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
        return [
            NotMeasured(nodeid=nodeid, framework=self._frameworks.get(nodeid, ""), why=reason)
            for nodeid, reason in why.items()
        ]

    def _know(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            cell = item.stash.get(CELL, None)
            if cell is not None:
                self._frameworks[item.nodeid] = cell.framework
            elif "benchmark" in getattr(item, "fixturenames", ()):
                self._frameworks[item.nodeid] = ""
