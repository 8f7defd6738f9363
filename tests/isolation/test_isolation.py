"""Workers: what dies fails alone, nothing outlives the session, everything reaches the parent."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.projects import QUICKLY, Project

# How cases die

_DYING = """
import ctypes, os, resource, signal, sys, time
from pathlib import Path
import numpy as np
from declared import doubling


def says(name, act):
    def function(x):
        print(f"last words: {name}", file=sys.stderr)
        act()
        return 2.0 * x
    return doubling(name, function, sizes=(4,))


def within_a_gibibyte(act):
    def limited():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
        act()
    return limited


def aborts_without_memory():
    try:
        np.ones(2**32)
    except MemoryError:
        os.abort()


def holds_the_lock():
    while True:
        ctypes.PyDLL(None).sleep(60)


OPERATIONS = [
    says("segfaults", lambda: ctypes.string_at(0)),
    says("killed", lambda: os.kill(os.getpid(), signal.SIGKILL)),
    says("exits", lambda: os._exit(3)),
    says("hangs", lambda: time.sleep(60)),
    says("hangs_in_c", holds_the_lock),
    says("aborts", within_a_gibibyte(aborts_without_memory)),
    says("leaves", lambda: sys.exit(5)),
    says("allocates", within_a_gibibyte(lambda: np.ones(2**32))),
]
"""

_EACH_DIES = """
import os
import pytest
from declared import double
from dying import OPERATIONS

@pytest.mark.fwbench(*OPERATIONS, double)
def test_it(case):
    case.measure()

@pytest.mark.fwbench(double)
def test_well(case):
    case.measure()
"""

#: What the failure of each must say, beside the tail of what it wrote.
_DEATHS = {
    "segfaults": ["was ended by SIGSEGV", "Fatal Python error: Segmentation fault", "string_at"],
    "killed": ["was killed by SIGKILL", "memory"],
    "exits": ["ended with exit status 3"],
    "hangs": ["did not finish the case within 2 s (--fw-timeout)", "in function"],
    "hangs_in_c": ["did not finish the case within 2 s (--fw-timeout)", "in holds_the_lock"],
    "aborts": ["was ended by SIGABRT", "in aborts_without_memory"],
}

#: What is raised is no death: pytest reports it as ever.
_RAISED = {"leaves": ["SystemExit: 5", "sys.exit(5)"], "allocates": ["MemoryError"]}


def test_every_death_fails_its_case_alone(project: Project) -> None:
    """Signal or status, and the tail of stderr, fail the case that caused it, and no other."""
    project.write("packages/dying.py", _DYING)
    project.write("test_it.py", _EACH_DIES)
    result = project.run("--fw-timeout=2", "--junitxml=junit.xml")
    outcomes = project.outcomes()
    for name, said in (_DEATHS | _RAISED).items():
        outcome = outcomes.pop(f"test_it[{name}-numpy-cpu-eager-forward-float32-4]")
        assert outcome.kind == "failure", name
        assert [part for part in said if part not in outcome.text] == [], outcome.text
        words = [line for line in outcome.text.splitlines() if line.startswith("last words")]
        assert words == ([f"last words: {name}"] if name in _DEATHS else []), outcome.text
    assert len(outcomes) == 4
    assert {outcome.kind for outcome in outcomes.values()} == {"passed"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("os._exit(3)", "the worker of frail did not start: the worker of frail ended with exit"),
        ("raise OSError('gone')", "the worker of frail did not start: does not import (OSError"),
    ],
    ids=["exits", "raises"],
)
def test_worker_that_does_not_start(project: Project, stage: str, said: str) -> None:
    """A framework whose import fails once it is needed fails its own cases, after two attempts."""
    project.install_pool()
    project.install(
        "frail",
        "frail_framework:Frail",
        f"""
        import os
        from pathlib import Path
        from support.pool_framework import Pool

        if Path("fail").exists():
            Path("attempts").open("a").write("one\\n")
            {stage}

        class Frail(Pool):
            name = "frail"
        """,
    )
    project.write("conftest.py", "def pytest_collection_finish():\n    open('fail', 'w').close()\n")
    project.write(
        "test_it.py",
        """
        import pytest
        from fwbench.workloads import tanh

        @pytest.mark.fwbench(tanh, sizes=(4, 5, 6))
        def test_it(case):
            case.measure()
        """,
    )
    result = project.run("--junitxml=junit.xml", fw="frail,pool")
    result.assert_outcomes(passed=3, failed=3)
    failures = [each.text for name, each in project.outcomes().items() if "frail" in name]
    assert all(said in text for text in failures)
    assert len(project.lines("attempts")) == 2


# How sessions end

#: The variable by which a process that a session left behind is recognised.
_MARK = "FWBENCH_TEST_SESSION"

#: pytest, with Ctrl-C switched on even where the tests run in the background of a shell.
_PYTEST = (
    "import signal, sys, pytest; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(pytest.main())"
)

_PATIENCE_S = 60.0

_SLOW = """
import subprocess, time
import pytest
from declared import double, doubling

def forever(x):
    subprocess.Popen(["sleep", "600"])
    open("slow", "w").close()
    time.sleep(600)

@pytest.mark.fwbench(double, doubling("slow", forever), double)
def test_it(case):
    case.measure()
""".replace(", double)", ")")

_SLOW_IMPORT = """
import time
open("slow", "w").close()
time.sleep(600)
"""


class Live:
    """A session that runs, in a session of the operating system's of its own."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self.project = project
        self.mark = f"{os.getpid()}-{project.path}"
        with (project.path / "output").open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PYTEST, *QUICKLY, *arguments],
                cwd=project.path,
                env={**os.environ, _MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_for(self, done: Callable[[], bool]) -> None:
        """Wait until something has happened in the session."""
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            assert time.monotonic() < deadline, self.output
            time.sleep(0.02)

    def wait(self) -> int:
        """Wait for the end; returns the exit status."""
        return self.process.wait(_PATIENCE_S)

    @property
    def output(self) -> str:
        """What it has printed."""
        return (self.project.path / "output").read_text()

    def processes(self) -> list[psutil.Process]:
        """What is alive of it, descendants included."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self.mark:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


Start = Callable[..., Live]


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    """Starts a session, and ends what is left of it when the test has failed."""
    started: list[Live] = []

    def begin(*arguments: str) -> Live:
        started.append(Live(project, *arguments))
        live = started[0]
        live.wait_for(lambda: (project.path / "slow").exists() or live.process.poll() is not None)
        assert live.process.poll() is None, live.output
        return live

    yield begin
    for live in started:
        for process in live.processes():
            process.kill()
        live.process.wait()


def _recover(project: Project) -> list[dict[str, Any]]:
    """The records that ``fwbench recover`` finds."""
    command = "import sys; from fwbench.cli import main; sys.exit(main())"
    subprocess.run(
        [sys.executable, "-c", command, "recover", "-o", "recovered.json"],
        cwd=project.path,
        check=True,
    )
    return project.entries("recovered.json")


_ONE_MEASURED = [
    "double-numpy-cpu-eager-forward-float32-4",
    "double-numpy-cpu-eager-forward-float32-8",
]


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the parent", "to its group"])
def test_interrupt(project: Project, start: Start, send: Callable[[int, int], None]) -> None:
    """Ctrl-C leaves no process, keeps what was measured in JSON and journal, exits with 2."""
    project.write("test_it.py", _SLOW)
    live = start("--fw=numpy", "--benchmark-json=out.json")
    assert len(live.processes()) >= 3, "the session, its worker, and what that has started"
    send(live.process.pid, signal.SIGINT)
    assert live.wait() == pytest.ExitCode.INTERRUPTED, live.output
    assert live.processes() == []
    stored = project.entries("out.json")
    assert [entry["param"] for entry in stored] == _ONE_MEASURED
    assert _recover(project) == stored
    assert "KeyboardInterrupt" in live.output
    assert "2 passed" in live.output


def test_interrupt_of_an_import(project: Project, start: Start) -> None:
    """Ctrl-C while frameworks are asked what they have leaves no process either."""
    project.install("slow", "slow_framework:Slow", _SLOW_IMPORT)
    project.write("test_it.py", _SLOW)
    live = start("--fw=slow,numpy")
    os.kill(live.process.pid, signal.SIGINT)
    assert live.wait() == pytest.ExitCode.INTERRUPTED, live.output
    assert live.processes() == []


def test_parent_killed(project: Project, start: Start) -> None:
    """When the parent is killed its workers end by themselves, and its records can be recovered."""
    project.write("test_it.py", _SLOW.replace('subprocess.Popen(["sleep", "600"])', ""))
    live = start("--fw=numpy", "--benchmark-json=out.json")
    assert len(live.processes()) == 2
    live.process.kill()
    live.wait()
    live.wait_for(lambda: live.processes() == [])
    assert not (project.path / "out.json").exists()
    recovered = _recover(project)
    assert [entry["param"] for entry in recovered] == _ONE_MEASURED
    assert all(entry["extra_info"]["fwbench"]["completion_s"] > 0 for entry in recovered)


# What reaches the parent

_TALKING = """
import logging, sys, warnings
import pytest
from declared import double

class Mine(UserWarning):
    pass

@pytest.mark.fwbench(double)
def test_it(case):
    print("to stdout")
    print("to stderr", file=sys.stderr)
    logging.getLogger("mine").warning("to the log")
    warnings.warn("of a user", stacklevel=1)
    warnings.warn("of another kind", Mine, stacklevel=1)
    if case.cell.size == 4:
        pytest.skip("by itself")
    case.measure()
    assert case.cell.size == 4, "told so"

@pytest.mark.xfail(reason="expected", strict=True)
@pytest.mark.fwbench(double, sizes=(4,))
def test_expected(case):
    raise NotImplementedError

@pytest.fixture
def broken():
    yield
    raise RuntimeError("while tearing down")

@pytest.mark.fwbench(double, sizes=(4,))
def test_teardown(broken, case):
    case.measure()
"""


def test_what_a_case_says(project: Project) -> None:
    """Output, log, warnings, skips, expected failures and teardown errors reach the parent."""
    project.write("test_it.py", _TALKING)
    result = project.run("-rA", "--junitxml=junit.xml")
    result.assert_outcomes(failed=1, skipped=1, xfailed=1, passed=1, errors=1, warnings=4)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: told so",
            "*- Captured stdout call -*",
            "to stdout",
            "*- Captured stderr call -*",
            "to stderr",
            "*- Captured log call -*",
            "WARNING * to the log",
            "*= warnings summary =*",
            "test_it.py::test_it[[]double-numpy-cpu-eager-forward-float32-4]",
            "*test_it.py:*: UserWarning: of a user",
            "*test_it.py:*: Mine: of another kind",
        ],
    )
    assert "SKIPPED [1] test_it.py:17: by itself" in str(result.stdout)
    outcomes = project.outcomes()
    assert (
        "while tearing down"
        in outcomes["test_teardown[double-numpy-cpu-eager-forward-float32-4]"].text
    )


def test_strict_warnings(cases: Project) -> None:
    """A project that turns every warning into an error can measure."""
    result = cases.run("-W", "error")
    result.assert_outcomes(passed=5)
    assert result.ret == pytest.ExitCode.OK, str(result.stderr)


def test_plugins_that_know_xdist(cases: Project) -> None:
    """Plugins that expect of a worker what xdist's workers have do not break fwbench's."""
    cases.write(
        "conftest.py",
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_configure_node(node):
            node.workerinput["seed"] = 1

        def pytest_configure(config):
            if hasattr(config, "workerinput"):
                assert config.workerinput["seed"] == 1
        """,
    )
    cases.run().assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("pytest.exit('enough is enough')", "enough is enough"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
    ids=["pytest.exit", "interrupt"],
)
def test_end_from_a_case(project: Project, end: str, said: str) -> None:
    """A case that ends the session ends it, with its reason, and keeps what was measured."""
    project.write(
        "test_it.py",
        f"""
        import pytest
        from declared import doubling

        @pytest.mark.fwbench(doubling("double", sizes=(4, 5, 6)))
        def test_it(case):
            case.measure()
            if case.cell.size == 5:
                {end}
        """,
    )
    result, records = project.measure()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert said in str(result.stdout) + str(result.stderr)
    assert [entry["params"]["size"] for entry in records.values()] == [4]


def test_warnings_as_errors(project: Project) -> None:
    """-W holds in workers."""
    project.write("test_it.py", _TALKING)
    result = project.run(
        "-W", "error::test_it.Mine", "-k", "test_it[double", "--junitxml=junit.xml"
    )
    texts = [outcome.text for outcome in project.outcomes().values()]
    assert all("Mine: of another kind" in text for text in texts)
    result.assert_outcomes(failed=2, deselected=2)


_NOTING = """
import os
import pytest

def note(text):
    with open("notes", "a") as notes:
        print(os.getpid(), text, file=notes)

@pytest.fixture(scope="session")
def per_session():
    note("session: set up")
    yield
    note("session: torn down")

@pytest.fixture(scope="module")
def per_module(request, per_session):
    note(f"{request.module.__name__}: set up")
    yield
    note(f"{request.module.__name__}: torn down")

@pytest.fixture
def noting(per_module, request):
    note(f"{request.module.__name__}: test")
"""

_NOTED = """
import pytest
from fwbench.workloads import noop, tanh

@pytest.mark.fwbench(noop, tanh, sizes=(8,))
def test_case(noting, case):
    case.measure()

def test_ordinary(noting):
    pass
"""


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_processes(project: Project, isolation: str) -> None:
    """One worker a framework sets up every fixture once; ordinary tests run in the parent."""
    project.install_pool()
    project.write("conftest.py", _NOTING)
    project.write("test_a.py", _NOTED)
    project.write("test_b.py", _NOTED)
    arguments = ["-p", "parent_facts", "--fw-threads=1", f"--fw-isolation={isolation}"]
    result, _ = project.measure(*arguments, fw="numpy,pool")
    result.assert_outcomes(passed=10)
    by_process = defaultdict(list)
    for line in project.lines("notes"):
        pid, _, text = line.partition(" ")
        by_process[int(pid)].append(text)
    tests = {pid: notes.count("test_a: test") for pid, notes in by_process.items()}
    parent = project.parent()["pid"]
    if isolation == "none":
        assert tests == {parent: 5}
    else:
        assert tests.pop(parent) == 1
        assert sorted(tests.values()) == [2, 2]
    for notes in by_process.values():
        assert list(dict.fromkeys(notes)) == [
            "session: set up",
            *(f"test_{x}: {what}" for x in "ab" for what in ("set up", "test", "torn down")),
            "session: torn down",
        ]
        assert all(notes.count(note) == 1 for note in notes if not note.endswith("test"))
    toggles = [
        entry["extra_info"]["fwbench"]["toggles"]
        for entry in project.entries("measured.json")
        if entry["params"]["framework"] == "pool"
    ]
    assert toggles == [{"omp_num_threads_at_import": "1"}] * 4


# pytest's and pytest-benchmark's own options

_SOME_WRONG = """
import pytest
from declared import double, twice, wrong

@pytest.mark.fwbench(double, wrong, twice)
def test_it(case):
    print("told aloud")
    case.measure()
"""


@pytest.mark.parametrize(("flag", "failed"), [("-x", 1), ("--maxfail=2", 2)])
def test_stopping(project: Project, flag: str, failed: int) -> None:
    """-x and --maxfail stop the session in good order, and --lf runs what had failed, alone."""
    project.write("conftest.py", _NOTING)
    project.write("test_it.py", _SOME_WRONG.replace("(case)", "(noting, case)"))
    project.run(flag).assert_outcomes(passed=2, failed=failed)
    notes = [line.partition(" ")[2] for line in project.lines("notes")]
    assert notes[-2:] == ["test_it: torn down", "session: torn down"]
    project.run("--lf").assert_outcomes(failed=failed)


def test_wrong_result(project: Project) -> None:
    """Work that is wrong fails its case, says by how much and where, and leaves no time."""
    project.write("test_it.py", _SOME_WRONG)
    result, records = project.measure("--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {name.split("-")[0] for name in records} == {"double", "twice"}
    text = project.outcomes()["test_it[wrong-numpy-cpu-eager-forward-float32-8]"].text
    assert "largest relative error 0.5 at [" in text
    assert "WrongResult" in text


def test_keeping_and_comparing(project: Project) -> None:
    """Saving, histograms, profiles, durations, -s and comparisons work across processes."""
    project.write("test_it.py", _SOME_WRONG.replace("wrong, ", ""))
    result, records = project.measure(
        *("--benchmark-save=first", "--benchmark-histogram=times", "--benchmark-cprofile=tottime"),
        *("--durations=2", "--durations-min=0", "-s"),
    )
    result.assert_outcomes(passed=4)
    output = str(result.stdout)
    assert output.index("told aloud") < output.index("benchmark 'double")
    assert "Captured stdout" not in output
    result.stdout.fnmatch_lines(["*cProfile (time in s)*", "test_it.py::test_it*", "ncalls*"])
    result.stdout.fnmatch_lines(["*slowest 2 durations*", "*s call *test_it*"])
    assert all("cprofile" in entry for entry in records.values())
    assert len([*project.path.glob("times*.svg")]) == 4
    (saved,) = project.path.glob(".benchmarks/*/0001_first.json")
    _scale(saved, 1000.0)
    compare = ("--benchmark-compare=0001", "--benchmark-compare-fail=min:10%")
    faster = project.run(*compare)
    assert faster.ret == pytest.ExitCode.OK
    faster.stdout.fnmatch_lines(["test_it*(NOW)*", "test_it*(0001_first)*"])
    _scale(saved, 1e-6)
    slower = project.run(*compare, "--fw-direction=forward,backward")
    assert slower.ret == pytest.ExitCode.TESTS_FAILED
    assert "Performance has regressed" in str(slower.stderr) + str(slower.stdout)
    # fwbench's own summary comes nevertheless.
    slower.stdout.fnmatch_lines(["*- fwbench -*", "skipped 4 cases: *"])
    compared = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", "measured.json", str(saved)],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(f"test_it[{name}]" in compared for name in records)


def _scale(path: Path, factor: float) -> None:
    """Make everything in a saved run slower by a factor."""
    run = json.loads(path.read_text())
    for entry in run["benchmarks"]:
        entry["stats"].update({name: entry["stats"][name] * factor for name in ("min", "max")})
    path.write_text(json.dumps(run))


@pytest.mark.parametrize(
    ("flag", "outcomes", "workers"),
    [
        ("--benchmark-only", {"passed": 4, "skipped": 1}, 2),
        ("--benchmark-skip", {"passed": 1, "skipped": 4}, 1),
        ("--collect-only", {}, 1),
    ],
)
def test_choosing(cases: Project, flag: str, outcomes: dict[str, int], workers: int) -> None:
    """Choosing tests and collecting alone mean what they always mean, and start no idle worker."""
    result = cases.run(flag, "-p", "parent_facts")
    result.assert_outcomes(**outcomes)
    assert result.ret == pytest.ExitCode.OK
    # One worker says what the framework has, and one runs cases.
    assert len(cases.parent()["workers"]) == workers
    assert (cases.path / ".fwbench").exists() == (flag == "--benchmark-only")
