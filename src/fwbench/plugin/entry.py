"""pytest's way in: options, the marker, the grid, the ``case`` fixture.

pytest imports this module in every session, so it imports nothing heavy. When the first test
with ``@pytest.mark.fwbench`` is collected, :mod:`fwbench.plugin.case` brings in the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from fwbench import suite
from fwbench.errors import CannotTell, FwbenchError, NotOnDevice
from fwbench.plugin import options

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from fwbench.cases.case import Case

#: In the name of what xdist's workers collect instead of cases: its controller then refuses them.
_UNDER_XDIST = "fwbench-under-xdist"

_NOT_UNDER_XDIST = (
    "benchmarks cannot run under pytest-xdist: their processes would slow each other down. "
    "Leave out -n (or give -n0), or deselect the tests marked fwbench"
)

_PLAIN = "fwbench-PlainHooks"

_COMPARE_FAIL = "--benchmark-compare-fail"

_REGRESSED = (
    f"failed by {_COMPARE_FAIL}, which compares two sessions, but those of equal code may differ "
    "as much: --fw-gate and fwbench ab judge by several"
)

_NOT_COMPARED = (
    f"{_COMPARE_FAIL} had nothing to compare with: no saved run is the one of --benchmark-compare "
    "(see the warning above); save one with --benchmark-autosave, or name a file of "
    "--benchmark-json"
)

#: Parts of the longest name of a saved run: of its machine, and of its file.
_STORED_PARTS = 2

#: The variable by which a module has pytest hide its frames.
_HIDDEN = "__tracebackhide__"

#: The package whose frames are hidden, but for the plugin's, which are around the test, too.
_PACKAGE, _PLUGIN = "fwbench.", "fwbench.plugin."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add fwbench's options to pytest's, each as a flag and as an ini setting."""
    options.add_to(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the specifications of fwbench's own hooks."""
    pluginmanager.add_hookspecs(HookSpecs)


@pytest.hookimpl(tryfirst=True)  # before pytest-benchmark looks for them
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Refuse a path of no file to compare with, for which pytest-benchmark has a traceback."""
    compared = config.getoption("benchmark_compare", None)
    path = Path(compared) if isinstance(compared, str) else Path()
    if len(path.parts) > _STORED_PARTS and not path.is_file():
        raise pytest.UsageError(
            f"--benchmark-compare={path} is no file: give one of --benchmark-json, or the "
            "beginning of a name under .benchmarks"
        )


@pytest.hookimpl(trylast=True)  # when pytest-benchmark's session is there
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what helps all tests; with a gate begin at once.

    So a session without cases fails the gate.
    """
    config.addinivalue_line(
        "markers",
        f"fwbench(*operations, {', '.join(options.MARKER_KEYWORDS)}): measure the operations in "
        "every cell of fwbench's grid; the keywords are defaults that the command line overrides, "
        "but for threshold: the smallest change, as a share, that --fw-gate, fwbench ab and "
        "--fw-race care for here.",
    )
    config.addinivalue_line(
        "markers",
        f"{options.WAIT_MARKER}(waits): whether rounds of a test with pytest-benchmark's fixture "
        "end when asynchronous results exist, as they do unless the ini setting fw_wait is false.",
    )
    config.pluginmanager.register(Grouping(), "fwbench-Grouping")
    config.pluginmanager.register(Regressions(), "fwbench-Regressions")
    if options.skips_what_cannot_be_told(config):
        config.pluginmanager.register(Undecided(), "fwbench-Undecided")
    if config.option.pyargs and not suite.is_packaged():
        config.args = [suite.path(argument) or argument for argument in config.args]
    parallel = getattr(config.option, "numprocesses", None)
    # Of other tests it is known once they are collected.
    if parallel and options.names_suite_alone(config) and not config.option.markexpr:
        raise pytest.UsageError(_NOT_UNDER_XDIST)
    if options.has_gate(config) or options.resumes(config):
        from fwbench.plugin.case import begin

        begin(config)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_compare_machine_info(
    machine_info: dict[str, Any], compared_benchmark: dict[str, Any]
) -> None:
    """Compare no names of machines with a run that does not say its own."""
    compared = compared_benchmark.get("machine_info", {})
    if compared.get("node") == "":
        compared["node"] = machine_info.get("node")


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Give the suite's files their node ids, which do not depend on where they are installed."""
    nodeid = suite.node_id(module_path)
    if nodeid is None:
        return None
    return pytest.Module.from_parent(parent, path=module_path, nodeid=nodeid)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turn a test with the marker into the cells of its grid."""
    mark = metafunc.definition.get_closest_marker("fwbench")
    if mark is None:
        if "benchmark" in metafunc.fixturenames:
            _attend_to_plain(metafunc.config)
        return
    from fwbench.plugin.case import begin

    session = begin(metafunc.config)
    if session.under_xdist:
        names = _stand_ins(mark)
        metafunc.parametrize("case", [None] * len(names), ids=names, indirect=True)
        return
    parameters = [
        pytest.param(
            cell, id=cell.id, marks=[pytest.mark.skip(reason=cell.gap)] if cell.gap else []
        )
        for cell in session.request_cells(mark, _place(metafunc.definition))
    ]
    metafunc.parametrize("case", parameters, indirect=True)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Let reports and debuggers stop in the test, not where fwbench has found it wrong."""
    try:
        return (yield)
    except BaseException as error:
        _hide(error, item)
        if isinstance(error, FwbenchError) and not item.config.option.fulltrace:
            _end_in_test(error)
        raise


def _hide(error: BaseException, item: pytest.Item) -> None:
    """Hide the frames of fwbench's modules in the traceback of an error, and in what led to it.

    ``pytest --full-trace`` shows all of them.
    """
    test = getattr(getattr(item, "function", None), "__globals__", None)
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        for entry in _entries(cause.__traceback__):
            names = entry.tb_frame.f_globals
            module = str(names.get("__name__", ""))
            is_own = module.startswith(_PACKAGE) and not module.startswith(_PLUGIN)
            if is_own and names is not test:
                names[_HIDDEN] = True
        cause = cause.__cause__ or cause.__context__


def _end_in_test(error: BaseException) -> None:
    """Let the traceback of an error that fwbench raised end before the first of its own frames.

    A debugger stops there, and a report shows it. The debugger takes frames for hidden that say so
    in their locals, not those of modules that do; neither hides those of the standard library
    between them. What code that fwbench calls has raised stays as it is.
    """
    entries = [*_entries(error.__traceback__)]
    first = next((n for n, entry in enumerate(entries) if _is_hidden(entry.tb_frame)), 0)
    if first and _is_hidden(entries[-1].tb_frame):
        entries[first - 1].tb_next = None


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_hidden(frame: FrameType) -> bool:
    names: dict[str, Any] = frame.f_globals
    return bool(names.get(_HIDDEN, False))


def _attend_to_plain(config: pytest.Config) -> None:
    """Register the hooks for benchmarks that are no cases."""
    manager = config.pluginmanager
    if manager.hasplugin("benchmark") and not manager.hasplugin(_PLAIN):
        from fwbench.plugin.plain import PlainHooks

        manager.register(PlainHooks(config), _PLAIN)
        if options.launches_again(config):
            from fwbench.plugin.plain_launches import PlainLaunches

            manager.register(
                PlainLaunches(config, options.from_config(config)), f"{_PLAIN}-launches"
            )


def _stand_ins(mark: pytest.Mark) -> list[str]:
    """One for each workload and framework, with their names: ``-k`` selects them as cases."""
    from fwbench.frameworks import registry

    workloads = [getattr(workload, "name", workload) for workload in mark.args]
    pairs = itertools.product(workloads, registry.registered())
    return [f"{workload}-{framework}-{_UNDER_XDIST}" for workload, framework in pairs]


def _place(item: pytest.Item) -> str:
    """File and line of a test, as pytest's own messages name it."""
    path, line, _ = item.location
    return path if line is None else f"{path}:{line + 1}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    """In xdist's controller, before anything runs: refuse to time cases side by side."""
    if any(_UNDER_XDIST in nodeid for nodeid in ids):
        raise pytest.UsageError(_NOT_UNDER_XDIST)


@pytest.fixture
def case(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Case:
    """One case of the grid, for a test marked with ``@pytest.mark.fwbench(operation, ...)``.

    The test calls :meth:`fwbench.cases.case.Case.measure`.
    """
    from fwbench.plugin.case import make_case

    return make_case(request.node, benchmark)


class HookSpecs:
    """The hooks that fwbench adds to pytest's."""

    def pytest_fwbench_launch(
        self, launch: int, launches: int | None, cases: int, nodeids: Sequence[str]
    ) -> None:
        """A launch begins; only with ``--fw-launches``, ``--fw-budget`` or ``--fw-race``.

        Args:
            launch: counted from 0.
            launches: how many there will be; None if that depends on what they bring.
        """

    def pytest_fwbench_launched(self, nodeid: str, entry: Mapping[str, Any] | None) -> None:
        """A case has been measured in a launch; its report follows when all launches are over.

        Args:
            entry: pytest-benchmark's, of this launch alone; None if it failed or was skipped.
        """

    def pytest_fwbench_epoch(self, nodeid: str, epoch: Mapping[str, Any]) -> None:
        """A training loop has finished an epoch.

        Called in the user's process, wherever the case runs, while it runs.

        Args:
            epoch: the fields of :class:`fwbench.cases.epochs.Epoch`, and ``epochs`` and
                ``repetitions`` of the schedule and ``rate`` and ``unit`` (examples or tokens a
                second).
        """


#: What the reason of a skip begins with, by the error that it is made of.
_SKIPS: dict[type[BaseException], str] = {CannotTell: "cannot tell: ", NotOnDevice: ""}


class Undecided:
    """Skips tests with claims that are neither shown nor refuted, and cases without a kernel."""

    @pytest.hookimpl
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Take such an error, of a fixture or of a test of unittest too, for a skip."""
        begins = None if call.excinfo is None else _SKIPS.get(type(call.excinfo.value))
        if call.excinfo is not None and begins is not None:
            skipped = pytest.skip.Exception(f"{begins}{call.excinfo.value}")
            call.excinfo = pytest.ExceptionInfo.from_exception(
                skipped.with_traceback(call.excinfo.tb)
            )


class Regressions:
    """The hooks that end a session in a sentence which pytest-benchmark would end in a traceback.

    Its own message names what has become slower; it helps sessions without cases, too.
    """

    def __init__(self) -> None:
        self._failed: tuple[pytest.ExitCode, str] | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_terminal_summary(self, config: pytest.Config) -> Generator[None, object, object]:
        """Catch what ``--benchmark-compare-fail`` raises when all has been shown."""
        if config.getoption("benchmark_compare_fail", None):
            from fwbench.plugin.host import BenchmarkSession

            if BenchmarkSession(config).take_back_compare_fail():
                self._failed = (pytest.ExitCode.USAGE_ERROR, _NOT_COMPARED)
        try:
            return (yield)
        except Exception as error:
            if type(error).__name__ != "PerformanceRegression":
                raise
            self._failed = (pytest.ExitCode.TESTS_FAILED, _REGRESSED)
            return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Fail the session, and say so in the last line."""
        result = yield
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if self._failed is not None and reporter is not None:
            status, message = self._failed
            session.exitstatus = session.exitstatus or status
            reporter.line(f"fwbench: {message}", red=True)
        return result


class Grouping:
    """The hook that keeps pytest-benchmark from failing where a test has no such parameter.

    It helps sessions without cases, too: the option may be in an ini file for those that have some.
    """

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_benchmark_group_stats(
        self, benchmarks: Sequence[dict[str, Any]]
    ) -> Generator[None, Any, Any]:
        """Let every parameter of every test have a value."""
        for row in benchmarks:
            row["params"] = _Params(row.get("params") or {})
        return (yield)


class _Params(dict[str, Any]):
    """Parameters of a test; one that it does not have is ``none``."""

    def __missing__(self, name: str) -> str:
        return "none"
