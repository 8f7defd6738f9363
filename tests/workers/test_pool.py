"""Workers: what dies fails alone, and nothing outlives the session."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from support.projects import QUICKLY, Project, measuring
from support.tables import tabled

#: What a case writes to descriptors that are not its own.
_FOREIGN = "this is not a message"

_TANH = "from fwbench.workloads import tanh"
_ONE_CASE = ("tanh, sizes=(4,)", _TANH)


# How cases die


_DYING = """
import contextlib, ctypes, os, resource, signal, sys, time
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


def writes_anywhere():
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"this is not a message")


def holds_the_lock():
    while True:
        ctypes.PyDLL(None).sleep(60)


def closes(x):
    os.closerange(0, 3)  # and whoever comes next can write to them all the same
    return 2.0 * x


OPERATIONS = [
    doubling("closes", closes, sizes=(4,)),
    says("segfaults", lambda: ctypes.string_at(0)),
    says("killed", lambda: os.kill(os.getpid(), signal.SIGKILL)),
    says("exits", lambda: os._exit(3)),
    says("hangs", lambda: time.sleep(60)),
    says("hangs_in_c", holds_the_lock),
    says("writes", writes_anywhere),
    says("aborts", within_a_gibibyte(aborts_without_memory)),
    says("leaves", lambda: sys.exit(5)),
    says("allocates", within_a_gibibyte(lambda: np.ones(2**32))),
]
"""


_EACH_DIES = measuring("*OPERATIONS, double", "from dying import OPERATIONS")
_EACH_DIES += measuring("double").replace("test_it", "test_well")


#: What the failure of each must say, beside the tail of what it wrote.
_DEATHS = {
    "segfaults": ["was ended by SIGSEGV", "Fatal Python error: Segmentation fault", "string_at"],
    "killed": ["was killed by SIGKILL", "memory"],
    "exits": ["ended with exit status 3"],
    "hangs": ["did not finish the case within 2 s (--fw-timeout)", "in function"],
    "hangs_in_c": ["did not finish the case within 2 s (--fw-timeout)", "in holds_the_lock"],
    "writes": ["where a message should begin; it was ended. Does the test write to a descriptor"],
    "aborts": ["was ended by SIGABRT", "in aborts_without_memory"],
}


#: What is raised is no death: pytest reports it as ever.
_RAISED = {"leaves": ["SystemExit: 5", "sys.exit(5)"], "allocates": ["MemoryError"]}


@pytest.mark.serial
def test_every_death_fails_its_case_alone(project: Project) -> None:
    """Signal or status, and the tail of stderr, fail the case that caused it, and no other."""
    project.write("packages/dying.py", _DYING)
    project.write("test_it.py", _EACH_DIES)
    result = project.run("--fw-timeout=2", "--junitxml=junit.xml")
    outcomes = project.outcomes()
    for name, death in (_DEATHS | _RAISED).items():
        outcome = outcomes.pop(f"test_it[{name}-numpy-cpu-eager-forward-float32-4]")
        assert outcome.kind == "failure", name
        assert [part for part in death if part not in outcome.text] == [], outcome.text
        # What a call has written to all descriptors stands before what the next one says.
        lines = [line.removeprefix(_FOREIGN) for line in outcome.text.splitlines()]
        words = {line for line in lines if line.startswith("last words")}
        assert words == ({f"last words: {name}"} if name in _DEATHS else set()), outcome.text
    assert len(outcomes) == 5
    assert {outcome.kind for outcome in outcomes.values()} == {"passed"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@tabled
def test_worker_that_does_not_start(project: Project, stage: str, message: str) -> None:
    """A framework whose import fails once it is needed fails its own cases, after two attempts."""
    project.install_pool()
    project.install(
        "frail",
        "frail_framework:Frail",
        f"""
        import os
        from pathlib import Path
        from pool_framework import Pool

        if Path("fail").exists():
            Path("attempts").open("a").write("one\\n")
            {stage}

        class Frail(Pool):
            name = "frail"
        """,
    )
    project.write("conftest.py", "def pytest_collection_finish():\n    open('fail', 'w').close()\n")
    project.write("test_it.py", measuring("tanh, sizes=(4, 5, 6)", _TANH))
    project.run("--collect-only", fw="frail,pool")  # asks: what has answered would run cases
    result = project.run("--junitxml=junit.xml", fw="frail,pool")
    result.assert_outcomes(passed=3, failed=3)
    failures = [outcome.text for name, outcome in project.outcomes().items() if "frail" in name]
    assert all(message in text for text in failures)
    # The first attempt came before the first case.
    assert [_GIVEN_UP in text for text in failures] == [False, True, True]
    assert len(project.lines("attempts")) == 2


#: The message for cases after the last attempt.
_GIVEN_UP = "; it is not started again after 2 failed attempts, whose output earlier failures show"


@pytest.mark.parametrize(
    "hook", ["", "pytest_configure", "pytest_sessionstart", "pytest_collection_finish"]
)
def test_worker_that_does_not_begin_its_session(project: Project, hook: str) -> None:
    """Where a conftest.py or a plugin fails in it alone; so do its cases, after two attempts.

    The last of them in one sentence; those of other frameworks are measured.
    """
    project.install_pool()
    fails = "open('attempts', 'a').write('one\\n'); raise RuntimeError('only in here')"
    project.write(
        "conftest.py",
        f"""
        import sys

        def fail():
            if sys.argv[0] == "-c" and sys.argv[2] == "pool":
                {fails}

        {f"def {hook}(): fail()" if hook else "fail()"}
        """,
    )
    project.write("test_it.py", measuring("tanh, sizes=(4, 5, 6, 7)", _TANH))
    result = project.run("--junitxml=junit.xml", fw="numpy,pool")
    result.assert_outcomes(passed=4, failed=4)
    failures = [outcome.text for name, outcome in project.outcomes().items() if "pool" in name]
    message = (
        "the worker of pool did not begin its session: the worker of pool ended with exit status"
    )
    assert [text.startswith(message) for text in failures] == [True] * 4
    # The first attempt came before the first case.
    assert ["RuntimeError: only in here" in text for text in failures] == [True, *[False] * 3]
    assert [_GIVEN_UP in text for text in failures] == [False, True, True, True]
    assert [text.count("\n") for text in failures[1:]] == [0, 0, 0]
    assert len(project.lines("attempts")) == 2


def test_workers_are_ready_before_anything_is_measured(project: Project) -> None:
    """Also those whose first case comes later: getting them ready would disturb the others."""
    project.install_pool()
    project.install(
        "later",
        "later_framework:Later",
        """
        from pathlib import Path
        from pool_framework import Pool

        if Path("collected").exists():
            Path("order").open("a").write("imported\\n")

        class Later(Pool):
            name = "later"
        """,
    )
    project.write(
        "conftest.py",
        """
        def pytest_collection_finish():
            open("collected", "w").close()
            if __import__("sys").argv[0] == "-c":
                open("order", "a").write("began\\n")
        """,
    )
    noting = """
        open("order", "a").write(f"{case.cell.framework}\\n")
        case.measure()
    """
    project.write("test_it.py", measuring(*_ONE_CASE, body=noting))
    project.run("--collect-only", fw="pool,later")  # asks: what has answered would run cases
    project.run(fw="pool,later").assert_outcomes(passed=2)
    assert project.lines("order") == ["imported", "began", "began", "pool", "later"]


def test_what_has_described_a_framework_runs_its_cases(project: Project) -> None:
    """Frameworks are imported once; what describes one that has no case does not stay."""
    project.install_pool()
    for name in ("first", "other"):
        project.install(
            name,
            f"{name}_framework:{name.title()}",
            f"""
            import os
            from pathlib import Path
            from pool_framework import Pool

            Path("imports").open("a").write(f"{name} {{os.getpid()}}\\n")

            class {name.title()}(Pool):
                name = "{name}"
            """,
        )
    seeing = """
        case.measure()
        for line in Path("imports").read_text().splitlines():
            name, pid = line.split()
            alive = Path(f"/proc/{pid}").exists()
            Path("seen").open("a").write(f"{name} {alive} {int(pid) == os.getpid()}\\n")
    """
    imports = ("import os", "from pathlib import Path")
    project.write("test_it.py", measuring(*_ONE_CASE, *imports, body=seeing))
    result = project.run("-k", "first", fw="first,other")
    result.assert_outcomes(passed=1)
    assert sorted(project.lines("seen")) == ["first True True", "other False False"]


def test_what_has_described_knows_nothing_of_a_changed_environment(project: Project) -> None:
    """Then another process runs the cases, which has what a conftest has set meanwhile."""
    project.install_pool()
    project.write(
        "conftest.py",
        """
        import os

        def pytest_collection_finish():
            if "fwbench.plugin.worker" not in " ".join(__import__("sys").orig_argv):
                os.environ["SET_LATE"] = "1"
        """,
    )
    seeing = """
        case.measure()
        assert os.environ["SET_LATE"] == "1"
    """
    project.write("test_it.py", measuring(*_ONE_CASE, "import os", body=seeing))
    project.run(fw="pool").assert_outcomes(passed=1)


# How sessions end


#: The variable by which a process that a session left behind is recognised.
_MARK = "FWBENCH_TEST_SESSION"

#: pytest, with Ctrl-C switched on even where the tests run in the background of a shell.
_PYTEST = (
    "import signal, sys, pytest; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(pytest.main())"
)


_PATIENCE_S = 60.0
_SLOW = measuring(
    'double, doubling("slow", forever)',
    """
import subprocess, time

def forever(x):
    subprocess.Popen(["sleep", "600"])
    open("slow", "w").close()
    time.sleep(600)
""",
)


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
        return (self.project.path / "output").read_text()

    def processes(self) -> list[psutil.Process]:
        actual = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self.mark:
                    actual.append(process)
            except (psutil.Error, OSError):
                continue
        return actual


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
