"""Choice of the launches of a session: a fixed number, ``--fw-budget``, or ``--fw-race``.

A budget goes where times are least certain; a race decides who is fastest at the same work. Both
print what a launch takes and what the time was spent on.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence

import pytest

from fwbench.gate.budget import Budget, Fixed, History, Precise, budget_facts
from fwbench.gate.race import Race, RaceGroup, race_facts
from fwbench.plugin import summary
from fwbench.plugin.launches import MultiLaunchRunner
from fwbench.plugin.progress import Progress
from fwbench.plugin.session import CELL, Session, cached, is_measured
from fwbench.plugin.store import Store
from fwbench.records import equality
from fwbench.records.launches import LaunchPlan
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import SessionFacts
from fwbench.records.units import count, duration
from fwbench.report import races
from fwbench.report.ranking import contests
from fwbench.workloads.grid import Cell

#: Where pytest's cache keeps how long each case took in a launch.
_CACHED = "fwbench/launches"

#: What it keeps of a launch beyond its cases, among the times of these.
_OVERHEAD = "overhead"


class BudgetHooks:
    """The hooks of a session whose launches have a budget, and tell what came of it."""

    def __init__(
        self,
        config: pytest.Config,
        runner: MultiLaunchRunner,
        store: Store,
        chooser: Precise | Race,
    ) -> None:
        self.config = config
        self.runner = runner
        self.store = store
        self.chooser = chooser
        self.budget = chooser.budget

    def facts(self) -> SessionFacts:
        """Time that was spent, and uncertain cases, or the verdicts by now."""
        chooser, history = self.chooser, self.runner.history
        if isinstance(chooser, Precise):
            return SessionFacts(budget=budget_facts(self.budget, history, chooser))
        chooser.drop_losers(history)
        budget = budget_facts(self.budget, history)
        return SessionFacts(budget=budget, race=race_facts(chooser, history))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse a budget that is shorter than a launch was in earlier sessions."""
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
        """Print the decisions so far, before the section that ends with the answer."""
        try:
            yield
        finally:
            if self.store.launched:
                self._print(self.store.launched, terminalreporter)

    def _print(self, facts: SessionFacts, reporter: pytest.TerminalReporter) -> None:
        title = "fwbench budget" if facts.race is None else "fwbench race"
        reporter.section(title, sep="-", yellow=True)
        width, every = summary.view(reporter).width, self.config.option.verbose > 0
        lines = [] if facts.race is None else races.race_lines(facts.race, width, every=every)
        spent = races.budget_lines(facts.budget, width) if facts.budget else ()
        for line in (*lines, *spent):
            reporter.line(line)

    def _earlier_s(self, cases: Sequence[str]) -> float | None:
        """Earlier time of a launch of these cases; None if one of them is not known."""
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
            cache.set(_CACHED, {self.runner.session.settings: {**self._cached(), **took_s}})

    def _cached(self) -> dict[str, float]:
        kept = cached(getattr(self.config, "cache", None), _CACHED)
        took_s = kept.get(self.runner.session.settings)
        known = took_s.items() if isinstance(took_s, dict) else ()
        return {case: seconds for case, seconds in known if isinstance(seconds, float)}


_SHORT_S = 90


def _rounded_up(seconds: float) -> str:
    """A duration as the option takes it: whole seconds, or whole minutes."""
    return f"{int(seconds) + 1}s" if seconds < _SHORT_S else f"{int(seconds / 60) + 1}min"


#: What a race may take by default.
BUDGET_S = 600.0


class Entrants:
    """The hook that enters the cases of a race, and which of them do the same work."""

    def __init__(self, threshold: float, session: Session) -> None:
        self.threshold = threshold
        self.session = session
        self._cells: dict[str, Cell] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Enter the cases of a session, and refuse a race of one."""
        self._cells = {item.nodeid: item.stash[CELL] for item in items if is_measured(item)}
        rivals = Counter(cell.group for cell in self._cells.values())
        if rivals and max(rivals.values()) < 2:  # noqa: PLR2004 (one alone is not a race)
            names = ", ".join(dict.fromkeys(map(_name, self._cells.values())))
            raise pytest.UsageError(
                "--fw-race compares contestants that do the same work, and there is one of each "
                f"({names}): add a framework or an execution "
                "(--fw, --fw-execution), or leave out --fw-race"
            )

    def groups(self, history: History) -> list[RaceGroup]:
        """The groups of at least two contestants, by what their first launch recorded."""
        known = {*history.cases}
        facts = {case: history.facts(case) for case in self._cells if case in known}
        recorded = {case: fact for case, fact in facts.items() if fact is not None}
        unequal = equality.unequal(recorded, self.session.known_toggles)
        equal = [
            Measurement(fact, (history.time_s(case),), nodeid=case)
            for case, fact in recorded.items()
            if case not in unequal and not history.lost(case)
        ]
        return [
            self._group(contest.title, [entrant.nodeid for entrant in contest.entrants])
            for contest in contests(equal)
        ]

    def _group(self, title: str, cases: Sequence[str]) -> RaceGroup:
        thresholds = [self._cells[case].threshold for case in cases]
        threshold = next((share for share in thresholds if share is not None), self.threshold)
        return RaceGroup(title, {case: _name(self._cells[case]) for case in cases}, threshold)


def _name(cell: Cell) -> str:
    """Framework and execution, and the toggles that were asked for."""
    toggles = (f"{name}={value}" for name, value in cell.toggles)
    return " ".join([cell.framework, cell.execution, *toggles])


def hooks(
    config: pytest.Config, session: Session, progress: Progress, plan: LaunchPlan, store: Store
) -> Iterator[object]:
    """The hooks that run launches, and those that tell what came of them."""
    options = session.options
    chooser: Fixed | Precise | Race = Fixed(plan.launches)
    if options.race:
        budget = Budget(BUDGET_S if options.budget_s is None else options.budget_s)
        entrants = Entrants(options.threshold, session)
        chooser = Race(entrants.groups, budget, plan.launches)
        yield entrants
    elif options.budget_s is not None:
        chooser = Precise(Budget(options.budget_s), options.threshold, plan.launches)
    runner = MultiLaunchRunner(config, session, progress, plan, chooser)
    yield runner
    if not isinstance(chooser, Fixed):
        yield BudgetHooks(config, runner, store, chooser)
