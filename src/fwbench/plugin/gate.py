"""``--fw-gate``: a session that fails if its cases have become slower than in the baseline."""

from collections.abc import Generator
from pathlib import Path

import pytest

from fwbench.errors import UsageError
from fwbench.gate.samples import SampleSet, each_once, refuse_differences, together
from fwbench.gate.stored import SESSIONS_AT_LEAST, Baseline, compare
from fwbench.gate.verdicts import Comparison, FailOn, Rules
from fwbench.plugin import summary
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.session import Session
from fwbench.plugin.store import Store
from fwbench.records.session_facts import StoredComparison, StoredGate
from fwbench.report import verdicts


class Gate:
    """The hooks that compare a session with the baseline."""

    def __init__(self, config: pytest.Config, session: Session, store: Store) -> None:
        self.config = config
        self.store = store
        self.options = session.options
        self.session = session
        self.benchmarks = BenchmarkSession(config)
        self.failing: tuple[FailOn, ...] = ()
        self.rules = Rules()
        self.baseline: SampleSet | None = None
        self.comparison: Comparison | None = None
        self.problem: str | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self) -> None:
        """Refuse, before the first measurement, a comparison that could not be made."""
        if self.config.option.collectonly:
            return
        try:
            self.failing = tuple(map(FailOn, self.options.fail_on))
            self.rules = Rules.given(self.options.gate or {})
            self.baseline = self._baseline()
            self._refuse_what_cannot_be_judged(self.baseline)
        except UsageError as error:
            raise pytest.UsageError(f"--fw-gate: {error}") from None

    def _baseline(self) -> SampleSet:
        """The run that ``--benchmark-compare`` names, or the baseline that was set.

        Without a name that option means the latest run that was saved, even one that had failed.
        """
        named = self.benchmarks.compared_name
        if named is None:
            return Baseline(self.config.rootpath).run()
        paths = self.benchmarks.compared_paths
        if not paths:
            found = "this file is no run" if Path(named).is_file() else "no saved run is called so"
            raise UsageError(
                f"--benchmark-compare={named}: {found}; give the beginning of a name under "
                ".benchmarks, or a file of --benchmark-json"
            )
        return together(named, each_once(paths))

    def _refuse_what_cannot_be_judged(self, baseline: SampleSet) -> None:
        if self.session.verify_only:
            raise UsageError("nothing is measured with --benchmark-disable; leave out one of them")
        sessions = max((len(sample.launches) for sample in baseline.samples.values()), default=0)
        if 0 < sessions < SESSIONS_AT_LEAST:
            raise UsageError(
                f"{baseline.name} has one session, and two sessions of equal work differ, too: set "
                f"{SESSIONS_AT_LEAST} or more (fwbench baseline set FILE FILE), or compare by "
                "turns (fwbench ab); fwbench gate FILE FILE shows differences, for information"
            )
        known = (sample.facts.threads for sample in baseline.samples.values())
        threads = {number for number in known if number is not None}
        allowed = "threads" in self.options.allow_different
        if threads and self.options.threads not in threads and not allowed:
            raise UsageError(
                f"{baseline.name} has been measured with --fw-threads={max(threads)}, and this "
                f"session has {self.options.threads}: measure both alike; or, if that is what is "
                "compared: --fw-allow-different threads"
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Compare before the run is stored, so that it says what came of it; fail afterwards."""
        if self.baseline is not None and session.exitstatus != pytest.ExitCode.INTERRUPTED:
            self._compare(self.baseline)
        yield
        if session.exitstatus != pytest.ExitCode.OK:
            return
        if self.problem is not None:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        elif self.comparison is not None:
            session.exitstatus = self.comparison.exit_status(self.failing)

    def _compare(self, baseline: SampleSet) -> None:
        measured = self.benchmarks.to_json()
        try:
            facts = {**measured, "fwbench": self.store.session_facts()}
            contender = together("this session", [SampleSet.from_json("this session", facts)])
            differences = refuse_differences(
                baseline, contender, self.options.allow_different, "--fw-allow-different"
            )
            self.comparison = compare(baseline, contender, self.rules, differences)
        except UsageError as error:
            self.problem = str(error)
            self.store.gate = StoredGate(base=baseline.name, problem=self.problem, verdicts={})
        else:
            self.store.gate = StoredGate(
                base=baseline.name,
                verdicts=self.comparison.counts,
                comparison=StoredComparison.unchecked(self.comparison.to_json()),
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """The verdicts, last of all."""
        try:
            yield
        finally:
            if self.problem is not None:
                terminalreporter.line(f"fwbench: --fw-gate: {self.problem}", red=True)
            if self.comparison is not None:
                terminalreporter.section("fwbench gate", sep="-", yellow=True)
                view = summary.view(terminalreporter)
                width = view.width if terminalreporter.isatty else None
                for line in verdicts.table(self.comparison, width):
                    terminalreporter.line(line)
