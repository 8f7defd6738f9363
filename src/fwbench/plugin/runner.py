"""Runs cases in the workers, and hands what comes back to pytest as if it had happened here."""

import itertools
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from fwbench import suite
from fwbench.errors import FwbenchError, UsageError
from fwbench.frameworks import gpus
from fwbench.machine import allowed_cpus
from fwbench.plugin import compiled_code, handover, host, revisits, rows
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.probing import FOUND, Probes
from fwbench.plugin.progress import Progress
from fwbench.plugin.revisits import (
    AT_MOST_S,
    Again,
    Medians,
    Visit,
    is_upper_bound,
    known_loop_s,
    visit_of,
)
from fwbench.plugin.rows import Rows, RowSession
from fwbench.plugin.session import CELL, Session, is_measured
from fwbench.processes import scratch
from fwbench.processes.session import RESULTS_VARIABLE
from fwbench.records.units import count
from fwbench.records.units import time as shown
from fwbench.terms.manifest import Manifest
from fwbench.workers.pool import PENDING, Turns, WorkerPool
from fwbench.workers.process import WorkerSpec
from fwbench.workloads.function import Function
from fwbench.workloads.grid import Cell

#: Rounds that take longer are checked: a median may be precise by then. Processor time is counted
#: in steps of 10 ms. 250 honest cases had up to 1.15 processors a thread in 0.1 s and more, and 343
#: with one thread at most 1.2 and 5 ms more, from 20 ms on.
_CHECKED_S = 0.02
_OF_THREADS, _SPARE_S = 1.2, 0.02


class IsolatedRunner:
    """The hooks that take cases from pytest and give it their reports."""

    def __init__(self, config: pytest.Config, session: Session, progress: Progress) -> None:
        self.config = config
        self.session = session
        self.progress = progress
        self.workers: WorkerPool | None = None
        self.following: dict[str, str | None] = {}
        self.visits: dict[pytest.Item, Visit] = {}
        self.contended: list[pytest.Item] = []
        self.rows = Rows()
        self.ahead: dict[str, list[pytest.TestReport]] = {}
        self.probes = Probes(session.options, session.traces, self.run_alone)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find out before the first measurement whether probes can write what they find."""
        if self.config.option.collectonly or not any(map(is_measured, items)):
            return
        try:
            self.probes.prepare()
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say what other plugins do not do for cases."""
        return host.notices(self.config)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Remember the order of the cases; end the workers with the last one.

        What wraps the loop, as pytest-cov does, finds what they leave behind when they end.
        """
        with compared(item.stash[CELL] for item in cases_of(session)):
            start_s = time.monotonic()
            if self.will_run(session):
                compiled_code.fill(cases_of(session), self.run_alone, self.progress)
            self.begin(session)
            ran = yield
            if self.workers is not None:
                self.workers.stop()
            if not session.testsfailed and self.session.plan is None:
                asked, took_s = self.session.options.revisit, time.monotonic() - start_s
                medians = Medians(getattr(self.config, "cache", None), self.session)
                self.session.revisits = revisits.repeated(
                    self.visits, medians, asked, took_s, self.revisit, self.contended
                )
        return ran

    def revisit(self, cases: Sequence[pytest.Item], limit_s: float) -> Again:
        """Measure cases again, in fresh processes: at least one of each framework.

        Args:
            limit_s: until when those beyond one of each framework may go on.
        """
        start_s = time.monotonic()
        self.progress.begin("revisiting", [item.nodeid for item in cases])
        self.rows = Rows()
        self.follow(cases)
        self.load(cases)
        again: dict[pytest.Item, list[pytest.TestReport]] = {}
        frameworks = len({item.stash[CELL].framework for item in cases})
        for number, item in enumerate(cases):
            end_s = time.monotonic() - start_s + self.visits[item].took_s
            if end_s <= (limit_s if number >= frameworks else AT_MOST_S):
                again[item] = [*self.run(item)]
        if self.workers is not None:
            self.workers.stop()
        return again

    def begin(self, session: pytest.Session) -> None:
        """Begin the session, before the first item."""
        cases = cases_of(session)
        self.rows = rows.rows_of(self.session, self.config, cases)
        self.follow(cases)
        if self.will_run(session):
            self.load(cases)

    def will_run(self, session: pytest.Session) -> bool:
        """True if pytest will go from item to item: not after errors of collection."""
        option = self.config.option
        stops = session.testsfailed and not option.continue_on_collection_errors
        return not (option.collectonly or stops)

    def load(self, cases: Sequence[pytest.Item]) -> None:
        """Have the workers of all cases made ready, before the first is measured."""
        if cases:
            specs = map(self._worker_of, filter(_starts_early, cases))
            for kind, values in self._pool(cases[0].session).load(specs):
                self._pass_on(kind, values, cases[0])
            self.progress.clear()

    def follow(self, cases: Sequence[pytest.Item]) -> None:
        """Note the next case of each worker: it decides which of its fixtures stay."""
        latest: dict[WorkerSpec, str] = {}
        self.following.clear()
        for item in reversed([*itertools.chain(*self.rows.among(cases))]):
            worker = self._worker_of(item)
            self.following[item.nodeid] = latest.get(worker)
            latest[worker] = item.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run a case in its framework's worker."""
        if not is_measured(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.probes.complete(item, self.reports(item)):
            self.progress.clear()
            self.keep(report)
            if visit := visit_of(report):
                self.visits[item] = visit
            elif is_upper_bound(report):
                self.contended.append(item)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item) -> bool | None:
        """Leave the time limit of a case to pytest-timeout in the worker."""
        return True if is_measured(item) else None

    def keep(self, report: pytest.TestReport) -> None:
        """Give pytest-benchmark the record that a report carries."""
        measured = getattr(report, "fwbench", None)
        if measured is not None:
            BenchmarkSession(self.config).add(measured)

    def reports(self, item: pytest.Item) -> Iterable[pytest.TestReport]:
        """The reports of a case, as they come; those of its row have come with its first case."""
        if item.nodeid not in self.ahead:
            row = self.rows.of(item)
            if len(row) == 1:
                return self.run(item)
            self.run_row(row, self.ahead)
        return self.ahead.pop(item.nodeid)

    def run(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        """Run a case in its worker and give its reports as they come."""
        with self.progress.case(item):
            yield from filter(None, self._run(item))

    def run_row(
        self, row: Sequence[pytest.Item], results: dict[str, list[pytest.TestReport]]
    ) -> None:
        """Run the cases of a row by turns, each in its worker; their reports are put here."""
        max_time_s = BenchmarkSession(self.config).max_time_s
        with self.progress.case(*row):
            rows.measure(row, self._in_row, max_time_s, results, partial(_say, self.config))

    def _in_row(self, item: pytest.Item, turns: Turns) -> RowSession:
        pool, spec = self._pool(item.session), self._worker_of(item)
        return RowSession(self._run(item, turns), partial(pool.fileno, spec))

    def _run(
        self, item: pytest.Item, turns: Turns | None = None
    ) -> Iterator[pytest.TestReport | None]:
        """The reports of a case; None where one that takes turns has none yet."""
        when, uses = "call", []
        try:
            for kind, values in self._pool(item.session).run(
                self._worker_of(item),
                item.nodeid,
                self.following[item.nodeid],
                self.session.options.timeout_s,
                turns,
            ):
                if kind == PENDING:
                    yield None
                    continue
                if kind == "rounds":
                    uses.append(values)
                    continue
                if self._pass_on(kind, values, item):
                    continue
                report = _received(self.config, values)
                if report.when == "call" and len(uses) > 1:
                    threads = _threads(self.session, item.stash[CELL])
                    _check_processors(threads, report, *uses[-2:])  # of a rerun
                # What dies after the call has passed is an error of the teardown.
                when = "call" if report.when == "setup" else "teardown"
                yield report
        except FwbenchError as error:
            yield pytest.TestReport(
                nodeid=item.nodeid,
                location=item.location,
                keywords=dict.fromkeys(item.keywords, 1),
                outcome="failed",
                longrepr=str(error),
                when=when,  # type: ignore[arg-type]
            )

    def _pass_on(self, kind: str, values: Any, item: pytest.Item) -> bool:
        """Hand on what a worker says besides reports; returns whether it was such a thing."""
        if kind == "stopped":
            pytest.exit(*values)
        if kind == "warning":
            _warn(self.config, values)
        if kind == "epoch":
            item.ihook.pytest_fwbench_epoch(nodeid=item.nodeid, epoch=values)
        if kind == FOUND:
            self.probes.keep(item, values)
        return kind in ("warning", "epoch", FOUND)

    def run_alone(self, item: pytest.Item, variables: Mapping[str, str]) -> Generator[list[Any]]:
        """Run a case in a worker that runs nothing else, and give the worker's messages."""
        spec = self._worker_of(item)
        alone = spec._replace(variables=(*spec.variables, *variables.items()))
        workers = self._new_pool(partial(self._session_of, [item]))
        try:
            timeout_s = self.session.options.timeout_s
            yield from workers.run(alone, item.nodeid, None, timeout_s)
        finally:
            workers.kill()

    def _pool(self, session: pytest.Session) -> WorkerPool:
        if self.workers is None:
            self.workers = self._new_pool(partial(self._worker_session, session))
            self.workers.adopt(self.session.inventory.take_workers())
        return self.workers

    def _new_pool(self, session_of: Callable[[WorkerSpec], dict[str, Any]]) -> WorkerPool:
        return WorkerPool(
            session_of,
            self.session.options.threads,
            inherit_output=self.config.option.capture == "no",
            tick=self.progress.tick,
        )

    def _worker_session(self, session: pytest.Session, worker: WorkerSpec) -> dict[str, Any]:
        followed = (item for item in cases_of(session) if item.nodeid in self.following)
        items = [item for item in followed if self._worker_of(item) == worker]
        return self._session_of(items, worker)

    def _session_of(self, items: Sequence[pytest.Item], worker: WorkerSpec) -> dict[str, Any]:
        files = {suite.module_name(item.path) or str(item.path): None for item in items}
        manifest = self.session.manifests[worker.framework]
        loop_s = known_loop_s(self.visits, worker.framework)
        return handover.worker_session(self.config, [*files], manifest, worker.interpreter, loop_s)

    def _worker_of(self, item: pytest.Item) -> WorkerSpec:
        """Which worker an item is for: some need an environment of their own."""
        cell, number = item.stash[CELL], self.rows.number(item)
        variables = _variables(cell, self.session.manifests[cell.framework], number)
        return WorkerSpec(
            cell.framework,
            tuple(variables.items()),
            self.session.inventory.interpreter_of(cell.framework),
            cell.gang,
            number,
        )

    def pytest_keyboard_interrupt(self) -> None:
        """End all workers when the session is interrupted, and keep what rows have brought."""
        if self.workers is not None:
            self.workers.kill()
        self.show(itertools.chain(*self.ahead.values()))

    def show(self, reports: Iterable[pytest.TestReport]) -> None:
        """Keep what was measured ahead of its turn, and tell pytest, whose turn does not come."""
        for report in reports:
            self.keep(report)
            self.config.hook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Let the workers tear down what they have set up."""
        if self.workers is not None:
            self.workers.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """End what is left, however the session ended."""
        if self.workers is not None:
            self.workers.kill()
        for worker in self.session.inventory.take_workers().values():  # no case was run
            worker.stop()


def _received(config: pytest.Config, values: dict[str, Any]) -> pytest.TestReport:
    if isinstance(values["longrepr"], list):
        values["longrepr"] = tuple(values["longrepr"])  # a skip's path, line and reason
    return config.hook.pytest_report_from_serializable(config=config, data=values)


def _starts_early(item: pytest.Item) -> bool:
    """False if an item's worker is started for its first case: it takes what others need."""
    cell = item.stash[CELL]
    return not cell.gang and cell.device == "cpu"


def _variables(cell: Cell, manifest: Manifest, number: int) -> dict[str, str]:
    """The environment of a case: toggles, and that a process for the CPU must not open a GPU.

    Args:
        number: of the worker.
    """
    variables = {**cell.variables, **compiled_code.variables(cell, manifest, number)}
    if cell.device == "cpu" and manifest.sees_gpu:
        variables[gpus.HIDDEN] = "1"
    return variables


def _threads(session: Session, cell: Cell) -> int:
    """Threads that a case may keep busy: its framework's, its loader's, and one that enqueues.

    A compiler has its own, and an eager call may compile each time: JAX's gradient of a scan does.
    """
    manifest = session.manifests[cell.framework]
    threads = session.options.threads + int(cell.toggle("workers")) + manifest.enqueues
    compiles = cell.execution == "eager" and "eager" in manifest.cached_executions
    return max(threads, allowed_cpus()) if compiles else threads


def _check_processors(threads: int, report: pytest.TestReport, *uses: Any) -> None:
    """Fail a case that kept more processors busy than it has threads; it has no record then."""
    (began_s, before_s), (ended_s, after_s) = uses
    wall_s, cpu_s = ended_s - began_s, after_s - before_s
    if wall_s > _CHECKED_S and cpu_s > _OF_THREADS * threads * wall_s + _SPARE_S:
        vars(report).pop("fwbench", None)
        report.outcome = "failed"
        report.longrepr = (
            f"rounds of {shown(wall_s)} took {shown(cpu_s)} of processor time, of this worker "
            f"and its children, and {count(threads, 'thread')} can take no more than "
            f"{shown(threads * wall_s)}; let set_threads limit all threads and processes"
        )


def _warn(config: pytest.Config, values: dict[str, Any]) -> None:
    """Hand on a worker's warning as if it had been raised here."""
    module, name = values["category"]
    try:
        category = getattr(import_module(module), name)
    except (ImportError, AttributeError):
        category = UserWarning  # a framework's own; its module is not imported here
    message = warnings.WarningMessage(
        category(values["message"]), category, values["filename"], values["lineno"]
    )
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": message,
            "when": "runtest",
            "nodeid": values["nodeid"],
            "location": values["location"],
        }
    )


def cases_of(session: pytest.Session) -> list[pytest.Item]:
    """The items that workers run."""
    return [item for item in session.items if is_measured(item)]


@contextmanager
def compared(cells: Iterable[Cell]) -> Iterator[None]:
    """Have folders for as long as cases run: for models' versions, functions' results, caches.

    Those of functions stay in the folder of a comparison, where the session is a side of one.
    """
    from fwbench.cases.references import VARIABLE

    every = [*cells]
    needed = {
        VARIABLE: any(map(rows.has_several_versions, every)),
        RESULTS_VARIABLE: any(map(_is_given_twice, every)) and RESULTS_VARIABLE not in os.environ,
        compiled_code.VARIABLE: any(map(compiled_code.is_redirected, every)),
    }
    with ExitStack() as stack:
        for variable in (name for name, is_needed in needed.items() if is_needed):
            os.environ[variable] = str(stack.enter_context(scratch.folder()))  # workers inherit it
            stack.callback(os.environ.pop, variable)
        yield


def _is_given_twice(cell: Cell) -> bool:
    """True of a function that is given for several frameworks."""
    return isinstance(cell.workload, Function) and len(cell.workload.implementations) > 1


def _say(config: pytest.Config, text: str) -> None:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(f"fwbench: {text}")
