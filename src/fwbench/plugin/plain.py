"""Hooks for plain benchmarks: tests with pytest-benchmark's fixture that know nothing of fwbench.

They are registered in every session that has such a test, so this module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from fwbench.errors import ProbeError
from fwbench.plugin import host, options
from fwbench.plugin.host import RERUN, BenchmarkSession
from fwbench.records.session_facts import (
    DESELECTED,
    NOT_REACHED,
    SKIPPED,
    SessionFacts,
    SessionOutcome,
)
from fwbench.records.units import count
from fwbench.version import __version__

if TYPE_CHECKING:
    from fwbench.cases.sampling import RepeatedCall
    from fwbench.frameworks.results import AwaitedResults
    from fwbench.records.facts import Sampled

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

    return SessionFacts(variables=known_variables(), libraries=libraries.loaded())


def known_variables() -> dict[str, str]:
    """Environment variables of this process that change speed, as a record has them."""
    from fwbench.frameworks.variables import variables_of
    from fwbench.records import privacy

    return privacy.variables(variables_of())


def outcome_of(session: pytest.Session) -> SessionOutcome:
    """Outcome of a session that ends, before a gate or a file that cannot be written fails it."""
    ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return SessionOutcome(failed=session.testsfailed, interrupted=session.exitstatus not in ended)


class PlainHooks:
    """The hooks that note why plain benchmarks have no record, and store it with the others'."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: pytest.Session | None = None
        self._why: dict[str, str] = {}
        self._plain: set[str] = set()
        self._finished: set[str] = set()
        self._profiled: list[Sampled] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find out before the first measurement whether it can be kept."""
        if any(map(is_plain, items)) and not self._config.option.collectonly:
            BenchmarkSession(self._config).check_writable()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember what was left out."""
        self._why |= {item.nodeid: DESELECTED for item in items if is_plain(item)}

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
        """Wait for what a plain test's function returns, and profile it, where that is wanted.

        And see what else the machine does meanwhile.
        """
        if not is_plain(item):
            return (yield)
        fixture = getattr(item, "funcargs", {}).get("benchmark")
        results = self._results if options.waits(item) else None
        if options.profiles(self._config):
            host.repeat(fixture, self._sampled, results, item.nodeid)
        is_waited = nullcontext() if results is None else host.waiting(fixture, results)
        with host.watching_others(fixture), is_waited:
            return (yield)

    def _sampled(self, call: RepeatedCall) -> Sampled:
        """Functions that a call's time goes to, or the reason why that is not known."""
        from fwbench.cases.sampling import sampled
        from fwbench.records.facts import Sampled

        try:
            found = sampled(call)
        except ProbeError as error:
            found = Sampled(gap=str(error))
        self._profiled.append(found)
        return found

    @pytest.hookimpl(trylast=True)  # below pytest-benchmark's table
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many benchmarks were profiled, and why the first was not that could not be.

        And which flags plain tests do not heed; in a session with cases the summary does.
        """
        has_cases = self._config.pluginmanager.hasplugin(STORE)
        unheeded = options.unheeded(self._config, (), has_plain=bool(self._plain))
        if unheeded and not has_cases:
            terminalreporter.write_line(f"fwbench: {unheeded}", yellow=True)
        gaps = [sampled.gap for sampled in self._profiled if sampled.gap]
        if len(gaps) < len(self._profiled):
            number = count(len(self._profiled) - len(gaps), "plain benchmark")
            line = f"functions of {number} sampled: fwbench report shows them"
            terminalreporter.write_line(f"fwbench: {line}")
        if gaps:
            number = count(len(gaps), "plain benchmark")
            terminalreporter.write_line(f"fwbench: {number} not profiled: {gaps[0]}")

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
        if report.when == "teardown":
            self._finished.add(report.nodeid)
        if report.outcome == RERUN:
            BenchmarkSession(self._config).remove(report.nodeid)
        elif (why := reason(report)) is not None:
            self._why.setdefault(report.nodeid, why)

    @pytest.hookimpl(optionalhook=True)
    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> None:
        """Add what could not be measured; in a session with cases the store does."""
        if self._config.pluginmanager.hasplugin(STORE) or self._tests is None:
            return
        late = dict.fromkeys(sorted(self._plain - self._finished), NOT_REACHED)
        output_json["fwbench"] = {
            "version": __version__,
            **of_process(),
            "outcome": dict(outcome_of(self._tests)),
            "missing": [
                {"nodeid": nodeid, "framework": "", "why": why}
                for nodeid, why in (late | self._why).items()
            ],
        }
