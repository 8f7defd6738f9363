"""Runs every case in several launches, and hands pytest what they add up to."""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from fwbench.gate.budget import Allocation, History, Result
from fwbench.plugin import rows
from fwbench.plugin.gangs import together
from fwbench.plugin.host import RERUN
from fwbench.plugin.progress import Progress
from fwbench.plugin.runner import IsolatedRunner, cases_of
from fwbench.plugin.session import Session, key_of
from fwbench.records import launches
from fwbench.records.facts import CaseFacts
from fwbench.records.launches import LaunchPlan


class MultiLaunchRunner(IsolatedRunner):
    """The hooks that measure all launches first, and then give pytest one report for each case."""

    def __init__(
        self,
        config: pytest.Config,
        session: Session,
        progress: Progress,
        plan: LaunchPlan,
        allocation: Allocation,
    ) -> None:
        super().__init__(config, session, progress)
        self.plan = plan
        self.allocation = allocation
        self.history = History()
        #: Reports of an interrupted session, by node id and launch; they are not measured again.
        self.kept: Mapping[tuple[str, int], list[pytest.TestReport]] = {}
        self.launched: dict[str, _CaseLaunches] = defaultdict(_CaseLaunches)

    def begin(self, session: pytest.Session) -> None:
        """Measure, before pytest goes from item to item."""
        if not self.will_run(session):
            return
        while not self._enough_failed() and (cases := self._selected(cases_of(session))):
            start_s = time.monotonic()
            self._launch(self.history.launches, cases)
            self.history.end_launch(time.monotonic() - start_s)

    def _selected(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        left = {item.nodeid: item for item in items if not self.launched[item.nodeid].failed}
        selected = {*self.allocation.select(list(left), self.history)}
        cases = [left[nodeid] for nodeid in left if nodeid in selected]
        return together(self.plan.order(self.history.launches, cases, key_of))

    def _launch(self, launch: int, cases: list[pytest.Item]) -> None:
        """Measure every case once, in workers that have measured nothing before."""
        for item in cases:
            if reports := self.kept.get((item.nodeid, launch)):
                entry = self.launched[item.nodeid].add(launch, reports)
                self.history.add(item.nodeid, _result(reports, entry, 0.0))
        cases = [item for item in cases if (item.nodeid, launch) not in self.kept]
        if cases:
            self._measure(launch, cases)

    def _measure(self, launch: int, cases: list[pytest.Item]) -> None:
        hook = self.config.hook
        launches = self.allocation.launches
        hook.pytest_fwbench_launch(
            launch=launch,
            launches=launches,
            cases=len(cases),
            nodeids=[item.nodeid for item in cases],
        )
        self.rows = rows.rows_of(self.session, self.config, cases)
        self.follow(cases)
        fresh = launch == 0 and self.session.options.first_call == "fresh"
        if not fresh:
            self.load(cases)
        for row in self.rows.among(cases):
            start_s = time.monotonic()
            results = self._fresh(row) if fresh else self._measured(row)
            took_s = (time.monotonic() - start_s) / len(row)
            for item in row:
                reports = results[item.nodeid]
                case = self.launched[item.nodeid]
                entry = case.add(launch, reports)
                self.history.add(item.nodeid, _result(reports, entry, took_s))
                passed = None if case.failed else entry
                hook.pytest_fwbench_launched(nodeid=item.nodeid, entry=passed)
            if self._enough_failed():
                break
        if self.workers is not None:
            self.workers.stop()

    def _measured(self, row: Sequence[pytest.Item]) -> dict[str, list[pytest.TestReport]]:
        results: dict[str, list[pytest.TestReport]] = {}
        if len(row) > 1:
            self.run_row(row, results)
        else:
            results[row[0].nodeid] = [*self.run(row[0])]
        return results

    def _fresh(self, row: Sequence[pytest.Item]) -> dict[str, list[pytest.TestReport]]:
        """Run cases in processes that have measured nothing, and measure nothing else."""
        self.follow(row)
        results = self._measured(row)
        if self.workers is not None:
            self.workers.stop()
        for report in itertools.chain(*results.values()):
            if (measured := getattr(report, "fwbench", None)) is not None:
                launches.mark_fresh(measured["entry"])
        return results

    def _enough_failed(self) -> bool:
        at_most = self.config.option.maxfail
        return bool(at_most) and at_most <= sum(done.failed for done in self.launched.values())

    def reports(self, item: pytest.Item) -> Iterable[pytest.TestReport]:
        """Reports of the launches; none of a case that failures elsewhere kept from them."""
        done = self.launched.pop(item.nodeid, None)
        return () if done is None else done.finished()

    def pytest_keyboard_interrupt(self) -> None:
        """Keep what has been measured so far."""
        super().pytest_keyboard_interrupt()
        for done in self.launched.values():
            self.show(done.finished())
        self.launched.clear()


def _result(
    reports: Sequence[pytest.TestReport], entry: dict[str, Any] | None, took_s: float
) -> Result:
    failed = any(report.failed for report in reports)
    if entry is None or failed:
        return Result(took_s, lost="failed" if failed else "skipped")
    launch = launches.launch_of(entry)
    facts = CaseFacts.unchecked(entry["extra_info"]["fwbench"])
    return Result(took_s, launch.value_s, launches.is_contended(launch), facts)


class _CaseLaunches:
    def __init__(self) -> None:
        self.failed = False
        self._reports: list[pytest.TestReport] = []
        self._records: list[dict[str, Any]] = []
        self._durations_s: dict[str, float] = defaultdict(float)

    def add(self, launch: int, reports: list[pytest.TestReport]) -> dict[str, Any] | None:
        """Add what one launch brought; returns its entry, None if nothing was measured."""
        self._reports = reports
        self.failed = any(report.failed for report in reports)
        latest = None
        for report in reports:
            self._durations_s[report.when] += report.duration
            if report.failed:
                report.sections.append(("fwbench", f"this was launch {launch + 1}"))
            latest = None if report.outcome == RERUN else getattr(report, "fwbench", latest)
        if latest is None:
            return None
        self._records.append(latest)
        return launches.mark(latest["entry"], launch)

    def finished(self) -> list[pytest.TestReport]:
        """The reports of the case: of the last launch, with the record of all."""
        for report in self._reports:
            report.duration = self._durations_s[report.when]
            if getattr(report, "fwbench", None) is not None:
                merged = launches.merge([record["entry"] for record in self._records])
                report.fwbench = {**self._records[-1], "entry": merged}  # type: ignore[attr-defined]
        return self._reports
