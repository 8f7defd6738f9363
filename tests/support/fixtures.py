"""Fixtures and hooks of all tests."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from fwbench.workloads.data import Found
from support.forkserver import Forking, ForkServer
from support.neighbours import blocking
from support.projects import CASES, Project
from support.real_training import find_real
from support.suites import Suite
from support.turns import Turns

pytest_plugins = ["pytester"]

_CAN_FORK = sys.platform == "linux"

# Tests share a machine with others: threads that wait actively for a processor that another
# process has are slower by an order of magnitude. OpenMP reads this when a framework is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Property-based tests: the same examples every time, or with --hypothesis-profile=search, as every
# night, others and many more.
settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, max_examples=200, print_blob=False
)
settings.register_profile(
    "search", settings.get_profile("fixed"), derandomize=False, max_examples=2000
)
settings.load_profile("fixed")

# The named environments of whoever runs the tests are none of theirs.
os.environ.pop("FWBENCH_ENVS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Serial tests of a file come last, one after the other: see :class:`support.turns.Turns`."""
    items.sort(key=_is_serial)


def _is_serial(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("serial") is not None


_TURNS = pytest.StashKey[Turns]()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.stash[_TURNS] = Turns(Path(config.getoption("basetemp")).parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Where several processes share the tests, no other runs while a serial one does."""
    if (turns := item.config.stash.get(_TURNS, None)) is None:
        return (yield)
    with turns.take(alone=_is_serial(item), stay=_is_serial(nextitem)):
        return (yield)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from tests' own sessions what this session was started with, and has installed."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", blocking())


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep fwbench's notes of environments that tests make apart from the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is the same in all projects, and made once."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def real() -> Callable[[str], Found]:
    return find_real


@pytest.fixture(scope="session")
def suite_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of sessions in the repository itself: no framework is asked twice what it has."""
    ours = tmp_path_factory.getbasetemp()
    several = hasattr(request.config, "workerinput")  # processes that share the tests
    return (ours.parent if several else ours) / "suite"


@pytest.fixture(scope="session")
def fork_servers() -> Iterator[Callable[[str], ForkServer]]:
    """Servers by the framework that they have imported; an empty text for none."""
    if not _CAN_FORK:
        pytest.skip("forks are made as on Linux")
    with ExitStack() as servers:

        @cache
        def server(framework: str) -> ForkServer:
            made = ForkServer.start(blocking(), framework)
            servers.callback(made.stop)
            return made

        yield server


@pytest.fixture(scope="session")
def fork_server(fork_servers: Callable[[str], ForkServer]) -> ForkServer:
    """The server that spares the sessions of projects, and their workers, their imports."""
    return fork_servers("")


@pytest.fixture(scope="session")
def forking_with(request: pytest.FixtureRequest) -> Forking:
    """Have what is started within a block forked from a process that has imported a framework."""
    if not _CAN_FORK:
        return lambda _: nullcontext()
    servers = request.getfixturevalue("fork_servers")
    return lambda framework: servers(framework).forking()


@pytest.fixture
def forked(fork_server: ForkServer) -> Iterator[None]:
    with fork_server.forking():
        yield


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    shared: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Project]:
    """A project without tests yet, whose sessions are forked."""
    servers = request.getfixturevalue("fork_servers") if _CAN_FORK else None
    made = Project(pytester, monkeypatch, shared, servers)
    yield made
    made.keep_manifests()


@pytest.fixture
def started(project: Project) -> None:
    """Have the sessions of the project, and their workers, started as a user's are."""
    project.servers = None


@pytest.fixture
def cases(project: Project) -> Project:
    """A project with a few cases and an ordinary test, in one file."""
    project.write("test_it.py", CASES)
    return project


@pytest.fixture
def suite(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A repository with a suite of two cases and one commit."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    return Suite(project, temporary)
