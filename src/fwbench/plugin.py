"""pytest's hooks that are the same in the parent, in a worker, and without isolation.

What only the parent does (header, isolation, journal, summary) is in :mod:`fwbench.parent`.
Everything is idle until a test carries ``@pytest.mark.fwbench``.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fwbench import grid, options, record
from fwbench.case import Case
from fwbench.measure.clock import Clock
from fwbench.parent import CELL, Parent
from fwbench.session import SESSION, Session, benchmark_session

_CLOCK = pytest.StashKey[Clock]()

#: The shortest round of work that is done when its call returns.
_ROUND_S = 200e-6

#: What xdist's workers collect instead of cases, so that its controller can refuse them.
_UNDER_XDIST = "fwbench-under-xdist"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    options.add_to(parser)


@pytest.hookimpl(trylast=True)  # after pytest-benchmark, which registers its session last
def pytest_configure(config: pytest.Config) -> None:
    """Begin a session of fwbench's, which costs nothing until it is used."""
    config.addinivalue_line(
        "markers",
        "fwbench(*operations, frameworks, devices, executions, dtypes, directions, sizes): "
        "measure the operations in every cell of fwbench's grid; the keywords are defaults that "
        "the command line overrides.",
    )
    session = config.stash[SESSION] = Session(config)
    if not session.in_worker and not session.under_xdist:
        config.pluginmanager.register(Parent(config, session), "fwbench-parent")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turn a test with the marker into the cells of its grid."""
    mark = metafunc.definition.get_closest_marker("fwbench")
    if mark is None:
        return
    session = metafunc.config.stash[SESSION]
    if session.under_xdist:
        metafunc.parametrize("case", [None], ids=[_UNDER_XDIST], indirect=True)
        return
    parameters = [
        pytest.param(
            cell, id=cell.id, marks=[pytest.mark.skip(reason=cell.gap)] if cell.gap else []
        )
        for cell in session.cells(mark)
    ]
    metafunc.parametrize("case", parameters, indirect=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    """In xdist's controller, before anything runs: refuse to time cases side by side.

    Raises:
        UsageError: there are cases.
    """
    if any(_UNDER_XDIST in nodeid for nodeid in ids):
        raise pytest.UsageError(
            "benchmarks cannot run under pytest-xdist: their processes would slow each other down. "
            "Leave out -n (or give -n0), or deselect the tests marked fwbench"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say what is wrong with the options, now that pytest would understand it.

    Raises:
        UsageError: they name what is not there.
    """
    session = config.stash[SESSION]
    if not session.used:
        return
    if session.problem is not None:
        raise pytest.UsageError(str(session.problem))
    for item in items:
        callspec = getattr(item, "callspec", None)
        cell = callspec.params.get("case") if callspec else None
        if isinstance(cell, grid.Cell):
            item.stash[CELL] = cell


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give pytest-benchmark a timer that waits for the case's device.

    Its fixture reads the timer from the closest marker, so the marker must be there before any
    fixture is, in whatever order the test names them.
    """
    cell = item.stash.get(CELL, None)
    if cell is None or cell.gap:
        return
    framework = item.config.stash[SESSION].framework(cell.framework)
    configured = benchmark_session(item.config).options
    closest = item.get_closest_marker("benchmark")
    given = dict(closest.kwargs) if closest else {}
    clock = Clock(given.pop("timer", configured["timer"].target), framework.waiter(cell.device))
    if clock.wait is None:
        # Calls of asynchronous work overlap within a round, so there a round is one call wherever
        # the clock allows; others lose nothing by longer rounds, and records become smaller.
        given.setdefault("min_time", max(_ROUND_S, float(configured["min_time"])))
    item.stash[_CLOCK] = clock
    item.add_marker(pytest.mark.benchmark(**given, timer=clock.timer), append=False)


@pytest.fixture
def case(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Case:
    """One case of the grid, for a test marked with ``@pytest.mark.fwbench(operation, ...)``.

    The test calls :meth:`fwbench.case.Case.measure`.
    """
    cell = request.node.stash.get(CELL, None)
    if cell is None:
        pytest.fail(
            "the fixture 'case' was asked for by a test without @pytest.mark.fwbench(operation)",
            pytrace=False,
        )
    session = request.config.stash[SESSION]
    others = {name: value for name, value in (benchmark.params or {}).items() if name != "case"}
    benchmark.params = {**others, **cell.params}
    benchmark.group = benchmark.group or cell.group
    return Case(
        cell,
        session.framework(cell.framework),
        session.manifests[cell.framework],
        request.node.stash[_CLOCK],
        benchmark,
        session.options.warmup_s,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the record of a case that passed travel on its report."""
    report = yield
    if call.when == "call" and report.passed and CELL in item.stash:
        report.fwbench = record.of(item.funcargs["benchmark"])  # type: ignore[attr-defined]
    return report
