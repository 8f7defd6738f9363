"""Isolated cases: all that they say reaches the parent, and pytest's options mean what they say."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from fwbench.records.session_facts import NOT_REACHED
from support.projects import Project, measuring
from support.tables import tabled

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


_FOLDERS = """
import pytest
from declared import double

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    file = tmp_path_factory.mktemp("shared") / "file"
    file.touch()
    return file

@pytest.mark.parametrize("round", [1, 2])
@pytest.mark.fwbench(double, sizes=(4, 8))
def test_case(case, shared, round):
    case.measure()
    assert shared.exists()

def test_other(tmp_path):
    pass
"""


def test_folders_for_temporary_files(project: Project) -> None:
    """Workers have theirs below the one that a user asks for, which no other one empties."""
    project.write("test_it.py", _FOLDERS)
    result = project.run("--basetemp=new", "--fw-threads=1", "--fw-toggle=pin=on,off")
    assert result.parseoutcomes().keys() == {"passed"}
    assert len([*(project.path / "new").glob("fwbench-numpy-*")]) > 1


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
        ]
    )
    assert "SKIPPED [1] test_it.py:17: by itself" in str(result.stdout)
    outcomes = project.outcomes()
    assert (
        "while tearing down"
        in outcomes["test_teardown[double-numpy-cpu-eager-forward-float32-4]"].text
    )


#: A clock of the parent's by which rounds take so long, and so much processor time.
_USE = """
from itertools import count
from fwbench.workers.process import WorkerProcess
numbers = count()
WorkerProcess.use = lambda self: ((number := next(numbers)) * WALL_S, number * CPU_S)
"""


@pytest.mark.parametrize(
    ("wall_s", "cpu_s", "failed"),
    [(1.0, 2.41, 0), (1.0, 2.43, 4), (0.019, 0.5, 0), (0.021, 0.5, 4)],
    ids=["as many", "more", "more for a moment", "more for a while"],
)
def test_processors_are_counted_by_the_parent(
    cases: Project, wall_s: float, cpu_s: float, failed: int
) -> None:
    """A case that keeps more busy than it has threads fails, and has no record."""
    cases.write("conftest.py", _USE.replace("WALL_S", str(wall_s)).replace("CPU_S", str(cpu_s)))
    result = cases.run("--fw-threads=2", "--benchmark-json=measured.json")
    result.assert_outcomes(failed=failed, passed=5 - failed)
    assert (cases.path / "measured.json").exists() == (not failed)
    assert str(result.stdout).count(", and 2 threads can take no more than") == 2 * failed


@pytest.mark.parametrize(("cpu_s", "failed"), [(2.41, 0), (2.43, 1)])
@pytest.mark.parametrize("capability", ["enqueues=True", 'cached_executions=("eager",)'])
def test_threads_that_enqueue_or_compile_may_work_beside_the_others(
    project: Project, capability: str, cpu_s: float, failed: int
) -> None:
    """One that enqueues, and on all CPUs those of a compiler that eager calls may wake."""
    project.install_pool()
    project.install(
        "busier",
        "busier_framework:Busier",
        f"""
        from dataclasses import replace
        from pool_framework import Pool

        class Busier(Pool):
            name = "busier"
            capabilities = replace(Pool.capabilities, {capability})
        """,
    )
    project.write("test_it.py", measuring("tanh, sizes=(4,)", "from fwbench.workloads import tanh"))
    use = _USE.replace("WALL_S", "1.0").replace("CPU_S", str(cpu_s))
    two_cpus = "from fwbench.plugin import runner\nrunner.allowed_cpus = lambda: 2\n"
    project.write("conftest.py", use + two_cpus)
    result = project.run("--fw-threads=1", fw="busier")
    result.assert_outcomes(failed=failed, passed=1 - failed)
    assert str(result.stdout).count(", and 2 threads can take no more than") == 2 * failed


def test_strict_warnings(cases: Project) -> None:
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
    ("end", "message", "status"),
    [
        ("pytest.exit('enough is enough')", "enough is enough", pytest.ExitCode.INTERRUPTED),
        ("pytest.exit('done', 7)", "done", 7),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", pytest.ExitCode.INTERRUPTED),
    ],
    ids=["pytest.exit", "with a status", "interrupt"],
)
def test_end_from_a_case(project: Project, end: str, message: str, status: int) -> None:
    source = measuring('doubling("double", sizes=(4, 5, 6))')
    project.write("test_it.py", f"{source}    if case.cell.size == 5:\n        {end}\n")
    result, records = project.measure()
    assert result.ret == status
    assert message in str(result.stdout) + str(result.stderr)
    assert [entry["params"]["size"] for entry in records.values()] == [4]
    session = project.session()
    assert session["planned"] == 3
    assert [missing["why"] for missing in session["missing"]] == [NOT_REACHED] * 2


def test_end_from_a_worker_that_collects(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import sys
        import pytest

        def pytest_collection_finish():
            if sys.argv[0] == "-c":
                pytest.exit("not in here")
        """,
    )
    project.write("test_it.py", measuring("double"))
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "not in here" in str(result.stdout) + str(result.stderr)
    result.assert_outcomes()


def test_workers_end_side_by_side(project: Project) -> None:
    """Each takes a second to end, and they do not wait for each other."""
    project.install_pool()
    project.install(
        "other",
        "other_framework:Other",
        """
        from pool_framework import Pool

        class Other(Pool):
            name = "other"
        """,
    )
    project.write(
        "conftest.py",
        """
        import os
        import sys
        import time
        from pathlib import Path

        def pytest_sessionfinish():
            if sys.argv[0] == "-c":
                Path(f"ending-{os.getpid()}").touch()
                until = time.monotonic() + 9
                while len([*Path().glob("ending-*")]) < 2 and time.monotonic() < until:
                    time.sleep(0.01)
                with open("seen", "a") as file:
                    file.write(f"{len([*Path().glob('ending-*')])}\\n")
        """,
    )
    source = measuring("tanh, sizes=(4,)", "from fwbench.workloads import tanh")
    project.write("test_it.py", source)
    project.run(fw="pool,other").assert_outcomes(passed=2)
    assert project.lines("seen") == ["2", "2"]


def test_warnings_as_errors(project: Project) -> None:
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


@pytest.mark.usefixtures("started")
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
    assert toggles == [{"inputs": "normal", "omp_num_threads_at_import": "1"}] * 4


_SOME_WRONG = measuring("double, wrong, twice") + '    print("told aloud")\n'


@pytest.mark.parametrize(("flag", "failed"), [("-x", 1), ("--maxfail=2", 2)])
def test_stopping(project: Project, flag: str, failed: int) -> None:
    project.write("conftest.py", _NOTING)
    project.write("test_it.py", _SOME_WRONG.replace("(case)", "(noting, case)"))
    project.run(flag).assert_outcomes(passed=2, failed=failed)
    notes = [line.partition(" ")[2] for line in project.lines("notes")]
    assert notes[-2:] == ["test_it: torn down", "session: torn down"]
    project.run("--lf").assert_outcomes(failed=failed)


def test_wrong_result(project: Project) -> None:
    project.write("test_it.py", _SOME_WRONG)
    result, records = project.measure("--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {name.split("-")[0] for name in records} == {"double", "twice"}
    text = project.outcomes()["test_it[wrong-numpy-cpu-eager-forward-float32-8]"].text
    assert "largest relative error 0.5 at [" in text
    assert "WrongResult" in text


#: One operation that is wrong at once, and one on changed inputs, after the rounds.
_EARLY_AND_LATE = """
import pytest
from declared import doubling, wrong

remembered = []

def remembering(x):
    remembered.append(2.0 * x)
    return remembered[0]

@pytest.mark.fwbench(wrong, doubling("late", remembering), sizes=4)
def test_it(case):
    case.measure()
"""


def test_where_failures_are_shown(project: Project) -> None:
    """A wrong result is shown at the test's own line; fwbench's frames need --full-trace."""
    project.write("test_it.py", _EARLY_AND_LATE)
    shown = str(project.run().stdout)
    assert shown.count("test_it.py:13: WrongResult") == 2
    assert f"fwbench{os.sep}cases" not in shown
    assert "contextlib.py" not in shown
    assert f"fwbench{os.sep}cases{os.sep}work.py" in str(
        project.run("-k", "wrong", "--full-trace", "--fw-isolation=none").stdout
    )


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
    assert "Traceback" not in str(slower.stderr) + str(slower.stdout)
    assert "--fw-gate and fwbench ab judge by several" in slower.outlines[-1]
    # fwbench's own summary comes nevertheless.
    slower.stdout.fnmatch_lines(["*- fwbench -*", "skipped 4 cases: *"])
    unknown = project.run("--benchmark-compare=0009", compare[1])
    assert unknown.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in str(unknown.stderr) + str(unknown.stdout)
    assert "--benchmark-compare-fail had nothing to compare with" in unknown.outlines[-1]
    compared = project.python("-m", "pytest_benchmark", "compare", "measured.json", str(saved))
    assert all(f"test_it[{name}]" in compared.stdout for name in records)


def _scale(path: Path, factor: float) -> None:
    """Make everything in a saved run slower by a factor."""
    run = json.loads(path.read_text())
    for entry in run["benchmarks"]:
        entry["stats"].update({name: entry["stats"][name] * factor for name in ("min", "max")})
    path.write_text(json.dumps(run))


@tabled
def test_choosing(cases: Project, flag: str, outcomes: dict[str, int], workers: int) -> None:
    cases.forget_manifests()
    result = cases.run(flag, "-p", "parent_facts")
    result.assert_outcomes(**outcomes)
    assert result.ret == pytest.ExitCode.OK
    # The one that says what the framework has runs cases, too.
    assert len(cases.parent()["workers"]) == workers
    assert (cases.path / ".fwbench").exists() == (flag == "--benchmark-only")


def test_a_case_that_its_worker_does_not_know_fails(project: Project) -> None:
    """Ids must be the same in every process; the message says so."""
    project.write("test_it.py", measuring('doubling(f"of_process_{os.getpid()}")', "import os"))
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = " ".join(str(result.stdout).split())
    assert "was not collected in the worker; the id of a case must be the same" in text
