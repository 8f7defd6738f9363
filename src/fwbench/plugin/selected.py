"""A small pytest plugin: what makes a session a launch of ``fwbench ab``.

It runs the collected node ids that a file names, which measures undecided cases again. It neither
races nor judges. What it measures takes turns with the same case of the other side.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Collection, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fwbench.frameworks.probes import UNTIL_VARIABLE
from fwbench.jsontext import dumps
from fwbench.options.options import DEST
from fwbench.plugin.host import BenchmarkSession, take_turns
from fwbench.processes import addresses
from fwbench.processes.session import (
    CHECKOUT_VARIABLE,
    EMPTY_VARIABLE,
    LEFT_OUT_VARIABLE,
    ORIGIN_VARIABLE,
    SELECTED_VARIABLE,
    SIDE_VARIABLE,
    records_beside,
)
from fwbench.turns import visits

#: What a command line asks of a project's own sessions, which launches are not.
_OF_OWN_SESSIONS = ("race", "budget_s", "gate", "resume")

#: What is never done where times are compared: a session of its own does, to which this is known.
_PROFILE = "profile"

#: What would save each launch as a run of its own, or compare it with one.
_WRITING = ("benchmark_save", "benchmark_autosave", "benchmark_compare", "benchmark_histogram")

#: Folders of environments, which may lie in a repository.
_INSTALLED = frozenset({"site-packages", "dist-packages"})

#: What ``addopts`` have for sessions that measure nothing, pytest-xdist's too, or what failed
#: before; and what a launch has instead.
_NOT_MEASURING = {
    "benchmark_disable": False,
    "benchmark_skip": False,
    "numprocesses": 0,
    "dist": "no",
    "tx": [],
    **dict.fromkeys(("stepwise", "stepwise_skip", "stepwise_reset"), False),
    **dict.fromkeys(("lf", "failedfirst", "newfirst"), False),
}

#: The place of a process's start among what follows its name (proc_pid_stat(5), field 22).
_START_TICKS = 19

#: Seeds of plugins that shuffle tests, pytest-randomly and pytest-random-order: turns take one
#: order on both sides.
_SEEDS = ("randomly_seed", "random_order_seed")


@pytest.hookimpl(tryfirst=True)  # before anybody reads an option
def pytest_configure(config: pytest.Config) -> None:
    """Ignore what ``addopts`` and ``PYTEST_ADDOPTS`` have for the project's own sessions.

    ``fwbench ab`` has refused the same on its own command line.
    """
    addresses.settle()
    is_timed = UNTIL_VARIABLE not in os.environ
    for name in (*_OF_OWN_SESSIONS, *[_PROFILE] * is_timed):
        setattr(config.option, DEST[name], None)
    for name in _WRITING:
        setattr(config.option, name, None)
    for name, value in _NOT_MEASURING.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    for name in _SEEDS:
        if hasattr(config.option, name):
            setattr(config.option, name, int(getattr(config.option, DEST["seed"])))
    if config.option.basetemp:
        # pytest empties its base folder when it starts: launches at the same time have their own.
        seat = os.environ.get(visits.VARIABLE, "").rpartition(":")[2]
        folder = Path(config.option.basetemp, os.environ.get(SIDE_VARIABLE) or seat or "launch")
        folder.parent.mkdir(parents=True, exist_ok=True)
        config.option.basetemp = str(folder)
    config.pluginmanager.register(LaunchClock(), "fwbench-LaunchClock")
    config.pluginmanager.register(LaunchRecords(config), "fwbench-LaunchRecords")
    checkout = json.loads(os.environ.get(CHECKOUT_VARIABLE) or "[]")
    if checkout:
        watch = CheckoutWatch(*map(Path, checkout))
        config.pluginmanager.register(watch, "fwbench-CheckoutWatch")


class CheckoutWatch:
    """The hooks that find modules of the working tree in a launch that measures a checkout.

    Whatever finds modules, they can lead there: editable installs have finders of many kinds.

    Args:
        file: is written if there are such modules: their files by their names, in JSON.
    """

    def __init__(self, repository: Path, checkout: Path, file: Path) -> None:
        self._repository = repository.resolve()
        interpreter = (Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix))
        within = (folder for folder in interpreter if folder.is_relative_to(self._repository))
        self._others = [checkout.resolve(), *within]
        self._file = file

    @pytest.hookimpl(tryfirst=True)  # before the other side is told what comes
    def pytest_collection_finish(self) -> None:
        """Measure nothing if the tests have imported such modules."""
        if self._find():
            raise pytest.UsageError("tests have imported modules from the working tree")

    def pytest_sessionfinish(self) -> None:
        """Look for modules that were imported later."""
        self._find()

    def _find(self) -> bool:
        """Write down the modules of the working tree; False if there are none."""
        suspects = {n: file for n, file in _modules_in(self._repository) if self._is_source(file)}
        known = self._known() if suspects else ()
        inside = {name: file for name, file in suspects.items() if file in known}
        if inside:
            self._file.write_text(json.dumps(inside, default=str), encoding="utf-8")
        return bool(inside)

    def _is_source(self, file: Path) -> bool:
        """True unless a file of the repository is installed there, or in the checkout."""
        is_other = any(map(file.is_relative_to, self._others))
        return not is_other and _INSTALLED.isdisjoint(file.relative_to(self._repository).parts)

    def _known(self) -> Collection[Path]:
        """The files of the repository that git tracks, or does not ignore."""
        from fwbench.gate.sides import git  # a launch that is as it should be does without

        listed = git(
            self._repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
        )
        return {self._repository / name for name in listed.split("\0")}


def _modules_in(repository: Path) -> Iterator[tuple[str, Path]]:
    """The files in a repository of modules, by their names, packages first."""
    folders: dict[str, str] = {}  # without links
    for name, module in sorted(sys.modules.items()):
        with suppress(AttributeError):  # others put objects of any kind there
            file = object.__getattribute__(module, "__dict__").get("__file__")
            if isinstance(file, str):
                folder, base = os.path.split(file)
                if folder not in folders:
                    folders[folder] = f"{os.path.realpath(folder)}{os.sep}"
                if folders[folder].startswith(f"{repository}{os.sep}"):
                    yield name, Path(folders[folder], base)


class LaunchClock:
    """The hooks that tell what a launch takes before it measures, and what measuring takes."""

    def __init__(self) -> None:
        self._took_s = {"start_s": _age_s(), "collection_s": 0.0, "fixtures_s": 0.0, "calls_s": 0.0}

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Time the imports of the tests."""
        start_s = time.perf_counter()
        result = yield
        self._took_s["collection_s"] = time.perf_counter() - start_s
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what fixtures take, and the tests themselves."""
        self._took_s["calls_s" if report.when == "call" else "fixtures_s"] += report.duration

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> Generator[None]:
        """Add all of it to the run."""
        yield
        output_json.setdefault("fwbench", {})["took"] = self._took_s


class LaunchRecords:
    """The hook that writes each record down at once, so that a launch that is ended loses none."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen = 0

    @pytest.hookimpl(trylast=True)  # the record of a case comes with its report
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append what a test has measured, unless it failed."""
        if report.when != "call":
            return
        benchmarks = BenchmarkSession(self._config)
        entries, self._seen = benchmarks.entries(self._seen)
        results = dict(benchmarks.written).get("--benchmark-json")
        if results is not None and entries and report.passed:
            with suppress(OSError), records_beside(results).open("a", encoding="utf-8") as file:
                file.writelines(dumps(entry) + "\n" for entry in entries)


def _age_s() -> float:
    """Seconds since this process was started; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        stat = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        started_s = int(stat[_START_TICKS]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s
    return 0.0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the items whose node ids the file does not have, and those that end launches."""
    nodeids = _known(SELECTED_VARIABLE)
    selected = {item.nodeid for item in items} if nodeids is None else {*nodeids}
    if left_out := json.loads(os.environ.get(LEFT_OUT_VARIABLE) or "[]"):
        selected -= {item.nodeid for item in items if _key_of(item) in left_out}
    if out := [item for item in items if item.nodeid not in selected]:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item.nodeid in selected]


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_generate_machine_info() -> dict[str, Any] | None:
    """Take the first launch's: asking the CPU takes a fifth of a short launch."""
    return _of_first("machine_info")


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_generate_commit_info() -> dict[str, Any] | None:
    """Take the first launch's: each look-up takes six calls of git."""
    return _of_first("commit_info")


def _of_first(section: str) -> dict[str, Any] | None:
    """A part of the JSON of the first launch; None in that launch itself."""
    run = _known(ORIGIN_VARIABLE)
    return None if run is None else run.get(section, {})


def pytest_unconfigure() -> None:
    """Have the interpreter end at once: to look for cycles in what is left takes 0.2 s."""
    gc.freeze()


def _known(variable: str) -> Any:
    """The contents of the file that an environment variable names; None without it."""
    file = os.environ.get(variable)
    return json.loads(Path(file).read_text(encoding="utf-8")) if file else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell whoever has started this session if there is nothing to run, and the referee what is."""
    if not session.items and (file := os.environ.get(EMPTY_VARIABLE)):
        Path(file).touch()
    if visits.are_taken():
        session.config.pluginmanager.register(TurnHooks(session), "fwbench-TurnHooks")


class TurnHooks:
    """The hooks of a session that takes turns with that of the other side."""

    def __init__(self, session: pytest.Session) -> None:
        items = [item for item in session.items if "benchmark" in _fixtures_of(item)]
        self._keys = {item.nodeid: _key_of(item) for item in items}
        self._programme = visits.Programme([*self._keys.values()])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Have a benchmark that is no case take turns; cases do so in their workers."""
        if "case" not in _fixtures_of(item):
            take_turns(getattr(item, "funcargs", {}).get("benchmark"), item.nodeid)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        """Take no more turns."""
        self._programme.end()

    def pytest_fwbench_launched(self, nodeid: str) -> None:
        """Say that a case is over; what pytest does with its report comes later."""
        self._programme.done(self._keys[nodeid])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Say that a test is over, however it ended."""
        if nodeid in self._keys:
            self._programme.done(self._keys[nodeid])


def _fixtures_of(item: pytest.Item) -> Collection[str]:
    return getattr(item, "fixturenames", ())


def _key_of(item: pytest.Item) -> str:
    if "case" not in _fixtures_of(item):
        return item.nodeid  # without importing what cases need
    from fwbench.plugin.session import key_of

    return key_of(item)
