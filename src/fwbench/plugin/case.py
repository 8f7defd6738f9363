"""The hooks that make a case, the same in the parent, in a worker, and without isolation."""

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fwbench import project, suite
from fwbench.cases.case import Case, Probe
from fwbench.cases.work import OperationWork
from fwbench.errors import UsageError
from fwbench.measure.clock import Clock
from fwbench.options.options import REPRESENTATIVES, Selection
from fwbench.plugin import host
from fwbench.plugin.gangs import GangHooks, pool
from fwbench.plugin.host import BenchmarkSession, FixtureBenchmark, check_cases
from fwbench.plugin.progress import Progress
from fwbench.plugin.session import ALL, CELL, UNASKED, Session, check_families, is_measured, key_of
from fwbench.plugin.store import Store, Unmeasured
from fwbench.plugin.summary import Summary, Tables, are_requested
from fwbench.processes import process
from fwbench.terms.names import CALLED
from fwbench.terms.presets import PUBLISHED
from fwbench.turns import visits
from fwbench.workloads import grid
from fwbench.workloads.function import Function
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation

_SESSION = pytest.StashKey[Session]()
_CLOCK = pytest.StashKey[Clock]()
_GANGS = pytest.StashKey[GangHooks]()

#: The shortest round on a CPU.
_ROUND_S = 500e-6


def begin(config: pytest.Config) -> Session:
    """Fwbench's session; when first asked for it begins, and its hooks are registered."""
    session = config.stash.get(_SESSION, None)
    if session is None:
        progress = Progress(config)
        session = config.stash[_SESSION] = Session(config, progress)
        plugins = [CaseHooks(session), *_parent_plugins(config, session, progress)]
        if session.problem is None:
            config.stash[_GANGS] = GangHooks(session.options)
            plugins.append(config.stash[_GANGS])
        for plugin in plugins:
            config.pluginmanager.register(plugin, f"fwbench-{type(plugin).__name__}")
    return session


def _parent_plugins(
    config: pytest.Config, session: Session, progress: Progress
) -> Iterator[object]:
    if session.in_worker or session.under_xdist or session.problem is not None:
        return
    unmeasured = Unmeasured()
    store = Store(config, session, unmeasured)
    tables = Tables(shown=session.options.tables or are_requested(config))
    shown = Summary(
        session,
        lambda: store.written,
        lambda: store.launched.race,
        lambda: store.journal is not None,
    )
    yield from (unmeasured, store, shown, tables, progress)
    if session.options.resume:
        from fwbench.plugin.resume import Resumption

        yield Resumption(config, store)
    if session.options.gate is not None:
        from fwbench.plugin.gate import Gate

        yield Gate(config, session, store)
    if session.isolated:
        plan = session.plan
        if plan is None:
            # Those of -s write to the terminal, and of launches begin alike.
            session.keeps_workers = not config.option.collectonly and config.option.capture != "no"
            from fwbench.plugin.runner import IsolatedRunner

            yield IsolatedRunner(config, session, progress)
        else:
            from fwbench.plugin import race

            yield from race.hooks(config, session, progress, plan, store)


def make_case(item: pytest.Item, fixture: BenchmarkFixture) -> Case:
    """The ``case`` of an item, in the process that measures it."""
    cell = item.stash.get(CELL, None)
    if cell is None:
        pytest.fail(
            "the fixture 'case' was asked for by a test without @pytest.mark.fwbench(operation)",
            pytrace=False,
        )
    session = begin(item.config)
    if session.verify_only:  # so that what fails can be looked at again
        OperationWork.changed_seed = 1
    benchmark = FixtureBenchmark(fixture, cell.precision)
    benchmark.name_case(cell.params, cell.group)
    if visits.are_taken():
        by_visits = cell.toggle("workers") == "0" and not cell.gang
        benchmark.take_turns(key_of(item), session.options.threads, by_visits=by_visits)
    framework = session.inventory.load(cell.framework)
    if framework.reads_stack and session.in_worker:  # a debugger wants the whole stack
        from fwbench.measure import empty_stack  # greenlet is needed for nothing else

        benchmark.wrap_rounds(empty_stack.rounds)
    worker = item.config.pluginmanager.get_plugin("fwbench-worker")
    if worker is not None and cell.device == "cpu" and not cell.gang:
        benchmark.mark_rounds = worker.mark_rounds
    manifest = session.manifests[cell.framework]
    if cell.toggle("workers") != "0":
        process.share_temporary_folder()
    case = _class_of(cell)(
        cell,
        framework,
        manifest,
        item.stash[_CLOCK],
        benchmark,
        session.options.warmup_s,
        tell=_teller(item),
        cache=_data_cache(item),
        limits=session.limits(manifest, manifest.device(cell.device)),
        probe=_probe(item, session),
        is_first=session.count_case() == 1,
    )
    if cell.gang:
        item.config.stash[_GANGS].equip(case, cell.replicas)
    return case


def read_data(item: pytest.Item) -> None:
    """Read the data set of an item, which its case then has at hand, here and in forks."""
    from fwbench.cases.training import read

    if (data := item.stash[CELL].data) is not None:
        with suppress(Exception):  # which the case will meet, and report
            read(data, _data_cache(item))


def _data_cache(item: pytest.Item) -> Path:
    return project.own_folder(item.config.rootpath, "data")


def _class_of(cell: grid.Cell) -> type[Case]:
    """The class that measures a cell, imported with the first cell that needs it."""
    if cell.gang:
        kinds = pool().case_kinds(cell).items()
        return next(
            kind for workload_class, kind in kinds if isinstance(cell.workload, workload_class)
        )
    if isinstance(cell.workload, Operation):
        return Case
    from fwbench.cases.kinds import case_class

    return case_class(cell.workload)


def _probe(item: pytest.Item, session: Session) -> Probe | None:
    """The probe for which this worker was started; None if it measures times."""
    worker = item.config.pluginmanager.get_plugin("fwbench-worker")
    if worker is None:
        return None
    from fwbench.plugin.probing import probe_of_worker

    return probe_of_worker(session.traces, worker.channel.send)


def _refusing(check: Callable[..., None], *arguments: Any) -> None:
    """Call what may refuse a session, in pytest's own way."""
    try:
        check(*arguments)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _teller(item: pytest.Item) -> Callable[[dict[str, Any]], Any]:
    """Callback that passes facts of an epoch to the hook, which the user's process calls."""
    worker = item.config.pluginmanager.get_plugin("fwbench-worker")
    if worker is not None:
        return partial(worker.channel.send, "epoch")
    hook = item.config.hook.pytest_fwbench_epoch
    return lambda epoch: hook(nodeid=item.nodeid, epoch=epoch)


def _deselect(config: pytest.Config, session: Session, items: list[pytest.Item]) -> None:
    """Take out the cases that are not in the requested families.

    They are deselected, as by pytest's own ``-k``: the count is in its summary.
    """
    cells = {item: item.stash[CELL] for item in items if CELL in item.stash}
    requested = _selections(session, cells)
    families = {name for selection in requested.values() for name in selection.families or ()}
    if families:
        check_families(families, (cell.workload.family for cell in cells.values()))
    everything = _names_tests(config)
    out = {
        item
        for item, cell in cells.items()
        if not _is_in(requested[item], cell) and not (everything and _is_for_all(requested[item]))
    }
    for item in out:
        item.stash[UNASKED] = True
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def _selections(session: Session, items: Iterable[pytest.Item]) -> dict[pytest.Item, Selection]:
    """Requested selection where each item is; looked up once for each marker."""
    by_mark: dict[int, Selection] = {}
    requested = {}
    for item in items:
        mark = next(item.iter_markers("fwbench"))
        if id(mark) not in by_mark:
            by_mark[id(mark)] = session.selection(mark)
        requested[item] = by_mark[id(mark)]
    return requested


def _is_in(requested: Selection, cell: Cell) -> bool:
    """True if a case is in the requested families; None stands for all."""
    families, workload = requested.families, cell.workload
    if families is None or workload.family in families:
        return True
    if ALL in families and not workload.on_request:
        return True
    return _is_for_all(requested) and _represents(cell, requested.sizes)


def _is_for_all(requested: Selection) -> bool:
    """True if work of every family is requested, or what represents it."""
    return bool({ALL, REPRESENTATIVES} & {*(requested.families or ())})


def _represents(cell: Cell, sizes: object) -> bool:
    """True if a case is among those that represent the families where no tests are named.

    They are operations that stand for others; if no sizes are requested, at the smallest and at the
    largest of the quick ones: what a call costs, and what the arithmetic costs. If sizes are that
    others have published, they are the operations that these had.
    """
    workload = cell.workload
    if sizes in PUBLISHED:
        declares = workload.by_preset.declares(str(sizes))
        return not workload.family or (not workload.on_request and declares)
    middling = workload.by_preset.quick[1:-1] if sizes is None else ()
    return workload.representative and cell.size not in middling


def _names_tests(config: pytest.Config) -> bool:
    """True if the command line asks for particular tests: ``-k``, ``-m``, files, node ids.

    So does ``--lf``: the tests that failed were selected when they ran. Files that are added to a
    directory ask for no more of the directory.
    """
    options = config.option
    if options.keyword or options.markexpr or getattr(options, "lf", False):
        return True
    folder = config.invocation_params.dir
    named = options.file_or_dir or ()
    return bool(named) and all(
        "::" in argument or (folder / (suite.path(argument) or argument)).is_file()
        for argument in named
    )


def _misspelt(expression: str, items: Iterable[pytest.Item]) -> list[str]:
    """A line for each word of ``-k`` that no test has, and that is like a part of a case's name."""
    if not expression:
        return []
    every = [*items]
    texts = " ".join(item.nodeid for item in every).lower()
    cells = (item.stash[CELL] for item in every if CELL in item.stash)
    parts = dict.fromkeys(part for cell in cells for part in cell.id.split("-"))
    lines = []
    for word in re.findall(r"[^\s()]+", expression):
        meant = [CALLED[word]] if CALLED.get(word) in parts else get_close_matches(word, parts, 1)
        if word.lower() not in texts and word not in ("and", "or", "not") and meant:
            lines.append(f"fwbench: no test has {word!r} in its name; did you mean {meant[0]!r}?")
    return lines


class CaseHooks:
    """Hooks of every process that has cases."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._misspelt: list[str] = []

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say which words of ``-k`` are in no test's name, and what they may stand for."""
        return self._misspelt

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Say what is wrong with the options, now that pytest would understand it."""
        if self.session.problem is not None:
            raise pytest.UsageError(str(self.session.problem))
        for item in items:
            callspec = getattr(item, "callspec", None)
            cell = callspec.params.get("case") if callspec else None
            if isinstance(cell, grid.Cell):
                item.stash[CELL] = cell
        if not self.session.in_worker:  # which collects what the parent has deselected
            self._misspelt = _misspelt(config.option.keyword, items)
            _refusing(_deselect, config, self.session, items)
        yield
        if self.session.in_worker:
            return
        cells = [item.stash[CELL] for item in items if CELL in item.stash]
        if cells:
            check_cases(config)
            _refusing(grid.check_sizes, cells)
            measured = [item.stash[CELL] for item in items if is_measured(item)]
            if any(cell.gang for cell in measured):
                where = self.session.options.engine, self.session.options.places
                _refusing(pool().check_places, *where, measured, self.session.manifests)
        for cell in cells:
            if cell.problem and not cell.gap:
                raise pytest.UsageError(cell.problem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Give pytest-benchmark a timer that waits for the case's device.

        Its fixture reads the timer from the closest marker, which must be there before any fixture.
        """
        cell = item.stash.get(CELL, None)
        if cell is None or cell.gap:
            return
        framework = self.session.inventory.load(cell.framework)
        configured = BenchmarkSession(item.config)
        closest = item.get_closest_marker("benchmark")
        given = dict(closest.kwargs) if closest else {}
        timer = given.pop("timer", configured.timer)
        clock = pool().GangClock() if cell.gang else Clock(timer, framework.waiter(cell.device))
        # Longer rounds cost nothing, readings of the clock do not matter in them, and records are
        # smaller. But on a GPU, whose cache may be emptied before each call, a round is one call.
        # So is one of a function that changes its arguments, which are restored before it.
        if isinstance(cell.workload, Function) and cell.workload.updates:
            clock.precision_s = 0.0
        on_device = clock.wait is not None and cell.device != "cpu"
        is_one_call = on_device or clock.precision_s == 0
        shortest_s = 0.0 if is_one_call else max(_ROUND_S, configured.min_time_s)
        given.setdefault("min_time", shortest_s)
        item.stash[_CLOCK] = clock
        host.set_precision(clock)
        item.add_marker(pytest.mark.benchmark(**given, timer=clock), append=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the record of a case that passed travel on its report; fail one without any."""
        report = yield
        case = getattr(item, "funcargs", {}).get("case")
        if call.when == "call" and report.passed and isinstance(case, Case) and not case.measured:
            report.outcome = "failed"
            report.longrepr = (
                "the test never called case.measure(), so nothing was verified or measured; call it"
            )
        if call.when == "call" and report.passed and CELL in item.stash:
            report.fwbench = host.record(item.funcargs["benchmark"])  # type: ignore[attr-defined]
        return report
