"""The deadline of a case: --fw-timeout, which epochs restart, or its worker's own."""

import json

import pytest

from fwbench.workers import pool
from fwbench.workers.pool import _Deadline
from support.projects import Project, measuring
from support.real_training import if_installed
from support.tables import tabled


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the machine; a test may change it."""
    time_s = [100.0]
    monkeypatch.setattr(pool.time, "monotonic", lambda: time_s[0])
    return time_s


@pytest.mark.usefixtures("now")
def test_the_earlier_one_holds() -> None:
    """The worker's own, until it is lifted, unless --fw-timeout comes first."""
    deadline = _Deadline(600.0)
    case_deadline = (700.0, "did not finish the case within 600 s (--fw-timeout)")
    assert deadline.first == case_deadline
    deadline.set_by_worker(5.0, "was late")
    assert deadline.first == (105.0, "was late")
    deadline.set_by_worker(5_000.0, "was late")
    assert deadline.first == case_deadline
    deadline.set_by_worker(5.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first == case_deadline


def test_an_epoch_restarts_the_sessions_own(now: list[float]) -> None:
    """And not what a plugin has set for the whole test."""
    deadline = _Deadline(600.0)
    deadline.set_by_worker(550.0, "was late")
    now[0] = 400.0
    deadline.restart()
    assert deadline.first == (650.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first[0] == 1000.0


def test_waiting_for_a_turn_takes_no_time(now: list[float]) -> None:
    """Neither limit counts it; they do between two turns."""
    deadline = _Deadline(600.0)
    deadline.set_by_worker(550.0, "was late")
    for waits, now[0] in ((True, 300.0), (False, 320.0), (True, 400.0)):
        deadline.look(waits=waits)
    assert deadline.first == (930.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first[0] == 980.0


def test_the_first_case_of_a_process_is_marked(project: Project) -> None:
    """Its first call starts what a framework, and a GPU, start once: later ones do not compare."""
    assert _first_in_process(project, measuring("double, sizes=(4, 5)")) == [
        ("double", 4, True),
        ("double", 5, False),
    ]


_COLD = """
import ctypes
import os
from pathlib import Path
from fwbench.frameworks.numpy.framework import NumPy


class Cold(type(double)):
    cold = True


def twofold(x):
    if len(x) == 4:
        os.environ.get("FATAL") and eval(os.environ["FATAL"])
    Path("pids").open("a").write(f"{os.getpid()} {os.getppid()}\\n")
    return 2.0 * x


NumPy.forks = 0 if os.environ.get("FORKS") == "on" else None
cold = Cold("cold", inputs=double.inputs, reference=double.reference, sizes=(4, 5))
cold.implement("numpy")(lambda np: twofold)
"""


def test_a_case_that_must_be_cold_has_a_process_that_ran_none(project: Project) -> None:
    """The first comes before all others, which may use the process of the last."""
    assert _first_in_process(project, measuring("double, cold, sizes=(4, 5)", _COLD)) == [
        ("cold", 4, True),
        ("cold", 5, True),
        ("double", 4, False),
        ("double", 5, False),
    ]


@pytest.mark.usefixtures("started")
def test_a_framework_that_may_be_forked_is_imported_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cold cases run in forks of their worker, which then has run none itself."""
    monkeypatch.setenv("FORKS", "on")
    first = _first_in_process(project, measuring("double, cold, sizes=(4, 5)", _COLD))
    assert first[:3] == [("cold", 4, True), ("cold", 5, True), ("double", 4, True)]
    pids = {tuple(line.split()) for line in project.lines("pids")}
    assert len({pid for pid, _ in pids}) == 2
    assert len({parent for _, parent in pids}) == 1


@tabled
def test_a_fork_that_dies_fails_its_case_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, fatal: str, message: str
) -> None:
    monkeypatch.setenv("FORKS", "on")
    monkeypatch.setenv("FATAL", fatal)
    project.write("test_it.py", measuring("double, cold, sizes=(4, 5)", _COLD))
    result = project.run("--fw-direction=forward", "--fw-threads=1", "--junitxml=junit.xml")
    result.assert_outcomes(passed=3, failed=1)
    assert message in project.outcomes()["test_it[cold-numpy-cpu-eager-forward-float32-4]"].text


_COMPUTING = """
import os
from pathlib import Path


def spent_ns():
    of_threads = Path("/proc/self/task").glob("*/schedstat")
    return {file.parent.name: int(file.read_text().split()[0]) for file in of_threads}


def twofold(x):
    before = spent_ns()
    for _ in range(20):
        result = x + x
        result.wait_to_read() if hasattr(result, "wait_to_read") else result.numpy()
    spent = {number: ns - before.get(number, 0) for number, ns in spent_ns().items()}
    busy = sum(ns > sum(spent.values()) / 10 for ns in spent.values())
    Path("computed").open("a").write(f"{os.getpid()} {os.getppid()} {busy}\\n")
    return result


class Cold(type(double)):
    cold = True


cold = Cold("cold", inputs=double.inputs, reference=double.reference, sizes=(10**6, 10**6 + 1))
for framework in ("mxnet", "tensorflow"):
    cold.implement(framework)(lambda framework: twofold)
"""


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("framework", "threads"), [if_installed("mxnet", 2), if_installed("tensorflow", 3)]
)
def test_a_fork_computes_with_several_threads(
    project: Project, framework: str, threads: int
) -> None:
    """Threads of its parent are gone there. The last case runs in the parent, which had none yet.

    TensorFlow's calling thread takes a part, too.
    """
    project.write("test_it.py", measuring("cold", _COMPUTING))
    options = ("--fw-direction=forward", "--fw-execution=eager", "--fw-threads=2")
    project.run(f"--fw={framework}", *options).assert_outcomes(passed=2)
    computed = [line.split() for line in project.lines("computed")]
    parents = {pid: parent for pid, parent, _ in computed}
    assert len(parents) == 2
    assert len(parents.keys() & {*parents.values()}) == 1
    # In some calls: one thread may do nearly all in the first, and on a busy machine.
    assert {pid for pid, _, busy in computed if int(busy) == threads} == parents.keys()


def _first_in_process(project: Project, tests: str) -> list[tuple[str, int, bool]]:
    """The cases in their order, and whether each was the first of its process."""
    project.write("test_it.py", tests)
    # Two, of which OpenBLAS has one at once.
    result = project.run("--fw-direction=forward", "--fw-threads=2", "--benchmark-json=run.json")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    run = json.loads((project.path / "run.json").read_text(encoding="utf-8"))
    facts = [entry["extra_info"]["fwbench"] for entry in run["benchmarks"]]
    return [(case["workload"], case["size"], case["first_in_process"]) for case in facts]
