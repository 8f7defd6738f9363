"""Hooks for plain benchmarks: tests with pytest-benchmark's fixture that know nothing of fwbench.

They are registered in every session that has such a test, so this module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from fwbench.plugin import host, options
from fwbench.plugin.host import RERUN, BenchmarkSession
from fwbench.records.session_facts import SKIPPED, SessionFacts
from fwbench.version import __version__

if TYPE_CHECKING:
    from fwbench.frameworks.results import AwaitedResults

#: The name under which the store of a session with cases is registered.
STORE = "fwbench-Store"


def is_plain(item: pytest.Item) -> bool:
    """True for a test that measures something itself, and is no case."""
    fixtures = getattr(item, "fixturenames", ())
    return "benchmark" in fixtures and "case" not in fixtures


def reason(report: pytest.TestReport) -> str | None:
    """Why a report means that its benchmark has no record; None if it does not mean that."""
    if report.passed:
        return getattr(report, "fwbench_reason", None)
    if report.skipped and type(report.longrepr) is tuple:
        return f"{SKIPPED}{report.longrepr[2].removeprefix('Skipped: ')}"
    return f"{report.when} failed" if report.failed else "skipped"


def of_process() -> SessionFacts:
    """Environment variables and libraries of this process, where plain tests compute."""
    from fwbench.frameworks import libraries
    from fwbench.frameworks.variables import variables_of
    from fwbench.records import privacy

    variables = privacy.variables(variables_of())
    return SessionFacts(variables=variables, libraries=libraries.loaded())


class PlainHooks:
    """The hooks that note why plain benchmarks have no record, and store it with the others'."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: pytest.Session | None = None
        self._why: dict[str, str] = {}
        self._plain: set[str] = set()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember what was left out."""
        self._why |= {item.nodeid: "deselected" for item in items if is_plain(item)}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Know which tests are plain benchmarks, which a report does not say."""
        self._tests = session
        self._plain = {item.nodeid for item in session.items if is_plain(item)}

    @cached_property
    def _results(self) -> AwaitedResults:
        from fwbench.frameworks.results import AwaitedResults

        return AwaitedResults()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Wait for what a plain test's function returns, unless that is turned off."""
        fixture = getattr(item, "funcargs", {}).get("benchmark")
        if not is_plain(item) or not options.waits(item):
            return (yield)
        with host.waiting(fixture, self._results):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Tell of a test that passed without a measurement."""
        report = yield
        if call.when == "call" and report.passed and is_plain(item):
            fixture = getattr(item, "funcargs", {}).get("benchmark")
            if host.has_measured_nothing(fixture):
                report.fwbench_reason = "the test passed without calling benchmark"  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember why a benchmark has no record."""
        if report.nodeid not in self._plain:
            return
        if report.outcome == RERUN:
            BenchmarkSession(self._config).remove(report.nodeid)
        elif (why := reason(report)) is not None:
            self._why.setdefault(report.nodeid, why)

    @pytest.hookimpl(optionalhook=True)
    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> None:
        """Add what could not be measured; in a session with cases the store does."""
        if self._config.pluginmanager.hasplugin(STORE) or self._tests is None:
            return
        ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        interrupted = self._tests.exitstatus not in ended
        output_json["fwbench"] = {
            "version": __version__,
            **of_process(),
            "outcome": {"failed": self._tests.testsfailed, "interrupted": interrupted},
            "missing": [
                {"nodeid": nodeid, "framework": "", "why": why} for nodeid, why in self._why.items()
            ],
        }
