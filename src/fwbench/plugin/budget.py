"""``--fw-budget``: says what a launch takes, what the time was spent on, and what is uncertain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, Generic, TypeVar

import pytest

from fwbench.gate.budget import Precise, budget_facts
from fwbench.gate.race import Race
from fwbench.plugin import summary
from fwbench.plugin.multilaunch import MultiLaunchRunner
from fwbench.plugin.session import is_measured
from fwbench.plugin.storage import Store
from fwbench.records.session_facts import SessionFacts
from fwbench.records.units import count, duration
from fwbench.report import races

#: Where pytest's cache keeps how long each case took in a launch.
_CACHED = "fwbench/launches"

#: What it keeps of a launch beyond its cases, among the times of these.
_OVERHEAD = "overhead"

#: The options that decide how long a case takes, in addition to pytest-benchmark's.
_DECIDING = ("threads", "warmup_s", "precision", "epochs", "repetitions", "steps", "data")

Chooser = TypeVar("Chooser", Precise, Race)


class BudgetHooks(ABC, Generic[Chooser]):
    """The hooks of a session whose launches have a budget.

    Args:
        config: of the session.
        runner: measures the launches.
        store: keeps what is said of the session.
        chooser: chooses the cases of the launches, within the budget.
    """

    #: What the section of the terminal is called.
    title = "fwbench budget"

    def __init__(
        self, config: pytest.Config, runner: MultiLaunchRunner, store: Store, chooser: Chooser
    ) -> None:
        self.config = config
        self.runner = runner
        self.store = store
        self.chooser: Chooser = chooser
        self.budget = chooser.budget

    @abstractmethod
    def facts(self) -> SessionFacts:
        """What is recorded of the launches so far."""

    @abstractmethod
    def lines(self, facts: SessionFacts, width: int) -> Sequence[str]:
        """What a terminal shows.

        Args:
            facts: of the session.
            width: columns of a line.
        """

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse a budget that is shorter than a launch, if earlier sessions tell what one takes.

        Raises:
            UsageError: it is.
        """
        launch_s = self._earlier_s([item.nodeid for item in items if is_measured(item)])
        if self.config.option.collectonly or launch_s is None or launch_s <= self.budget.total_s:
            return
        cases = count(sum(map(is_measured, items)), "case")
        raise pytest.UsageError(
            f"the budget of {duration(self.budget.total_s)} is shorter than one launch of {cases}, "
            f"which took {duration(launch_s)} here before; give --fw-budget at least "
            f"{_rounded_up(launch_s)}, or select fewer cases (-k)"
        )

    def pytest_fwbench_launch(self, launch: int) -> None:
        """Say, once that is known, how long a launch takes."""
        history = self.runner.history
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if launch == 1 and reporter is not None:
            cases, took = count(len(history.cases), "case"), duration(history.took_s)
            left = duration(max(0.0, self.budget.total_s - self.budget.used_s))
            reporter.ensure_newline()
            reporter.write_line(f"fwbench: a launch of {cases} took {took}; {left} are left")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        """Conclude before the run is stored, also when it was interrupted."""
        if self.runner.history.cases:
            self.store.launched = self.facts()
            self._keep_times()
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """What was decided, and what was not; before the section that ends with the answer."""
        try:
            yield
        finally:
            if self.store.launched:
                terminalreporter.section(self.title, sep="-", yellow=True)
                width = summary.view(terminalreporter).width
                for line in self.lines(self.store.launched, width):
                    terminalreporter.line(line)

    def _earlier_s(self, cases: Sequence[str]) -> float | None:
        """How long a launch of these cases took before; None if one of them is not known."""
        took_s = self._cached()
        if not cases or any(case not in took_s for case in cases):
            return None
        return took_s.get(_OVERHEAD, 0.0) + sum(took_s[case] for case in cases)

    def _keep_times(self) -> None:
        """Let later sessions know what a launch takes."""
        cache = getattr(self.config, "cache", None)
        if cache is not None:
            history = self.runner.history
            took_s = {case: history.cost_of_s(case) for case in history.cases}
            if history.launches:  # of one that was interrupted nothing is known but its cases
                took_s[_OVERHEAD] = history.overhead_s
            cache.set(_CACHED, {self._settings: {**self._cached(), **took_s}})

    def _cached(self) -> dict[str, float]:
        cache = getattr(self.config, "cache", None)
        kept: Any = {} if cache is None else cache.get(_CACHED, {})
        return kept.get(self._settings, {}) if isinstance(kept, dict) else {}

    @property
    def _settings(self) -> str:
        """What must be the same for a case to take as long as before."""
        benchmarks = vars(self.config.option).items()
        settings = {n: v for n, v in benchmarks if n.startswith(("benchmark_m", "benchmark_cal"))}
        # Of the session: the ini file may have them, too.
        settings |= {name: getattr(self.runner.session.options, name) for name in _DECIDING}
        return " ".join(f"{name}={value}" for name, value in settings.items())


class PreciseHooks(BudgetHooks[Precise]):
    """Those of a session that spends its budget where times are least certain."""

    def facts(self) -> SessionFacts:
        """How long it took, and what is uncertain."""
        budget = budget_facts(self.budget, self.runner.history, self.chooser)
        return SessionFacts(budget=budget)

    def lines(self, facts: SessionFacts, width: int) -> Sequence[str]:
        """The same, for people."""
        return races.budget_lines(facts.budget, width) if facts.budget else ()


_SHORT_S = 90


def _rounded_up(seconds: float) -> str:
    """A duration as the option takes it: whole seconds, or whole minutes."""
    return f"{int(seconds) + 1}s" if seconds < _SHORT_S else f"{int(seconds / 60) + 1}min"
