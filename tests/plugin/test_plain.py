"""Plain benchmarks: tests with pytest-benchmark's fixture that know nothing of fwbench."""

import json
from typing import Any

import pytest

from fwbench.gate.samples import SampleSet
from support.projects import CASES, Project
from support.tables import tabled

_PLAIN = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("cannot be set up")

def test_measured(benchmark):
    benchmark(sum, [1, 2])

@pytest.mark.parametrize("n", [1, 2])
def test_parametrised(benchmark, n):
    benchmark(sum, [n])

def test_wrong(benchmark):
    assert benchmark(sum, [1, 2]) == 4

def test_broken(benchmark, broken):
    benchmark(sum, [1])

def test_unused(benchmark):
    pass

def test_skipped(benchmark):
    pytest.skip("not here")

@pytest.mark.xfail
def test_expected(benchmark):
    assert benchmark(sum, [1, 2]) == 4
"""

#: What is to be said of each of them that has no figure.
_WHY = {
    "test_wrong": "call failed",
    "test_broken": "setup failed",
    "test_unused": "the test passed without calling benchmark",
    "test_skipped": "skipped: not here",
    "test_expected": "skipped",
}


def _stored(project: Project) -> dict[str, Any]:
    return json.loads((project.path / "measured.json").read_text(encoding="utf-8"))


def test_a_run_says_which_plain_benchmarks_have_no_figure(project: Project) -> None:
    """Tests that failed after they were timed have none, either: what they timed was wrong."""
    project.write("test_it.py", _PLAIN)
    project.run("--benchmark-json=measured.json", fw=None)
    stored = _stored(project)
    assert stored["fwbench"]["outcome"] == {"failed": 2, "interrupted": False}
    missing = {fact["nodeid"]: fact["why"] for fact in stored["fwbench"]["missing"]}
    assert missing == {f"test_it.py::{name}": why for name, why in _WHY.items()}
    run = SampleSet.from_json("measured.json", stored)
    assert {sample.label for sample in run.samples.values()} == {
        *("test_it.py::test_measured", "test_it.py::test_parametrised[1]"),
        "test_it.py::test_parametrised[2]",
    }
    assert run.failures == ["2 tests failed"]


def test_benchmarks_that_a_session_did_not_come_to_are_told_from_others(project: Project) -> None:
    project.write("test_it.py", _PLAIN)
    project.run("--benchmark-json=measured.json", "-x", fw=None)
    missing = {fact["nodeid"]: fact["why"] for fact in _stored(project)["fwbench"]["missing"]}
    assert missing["test_it.py::test_wrong"] == "call failed"
    assert {missing[f"test_it.py::{name}"] for name in ("test_unused", "test_skipped")} == {
        "not reached before the session ended"
    }
    assert "test_it.py::test_measured" not in missing


def test_a_run_of_plain_benchmarks_can_be_a_baseline(project: Project) -> None:
    """Two sessions are one, and a later session is held against them, by name."""
    project.write("test_it.py", "def test_it(benchmark):\n    benchmark(sum, [1, 2])\n")
    for name in ("first.json", "second.json"):
        project.run(f"--benchmark-json={name}", fw=None).assert_outcomes(passed=1)
    done = project.python("-m", "fwbench", "baseline", "set", "first.json", "second.json")
    assert done.returncode == 0, done.stderr
    result = project.run("--fw-gate=90%", fw=None)
    assert "test_it.py::test_it" in str(result.stdout)
    assert "this session against" in str(result.stdout)
    project.write("test_it.py", "def test_other(benchmark):\n    benchmark(sum, [1, 2])\n")
    assert project.run("--fw-gate=90%", fw=None).ret == 11


@pytest.mark.parametrize("outcome", ["rerun", "passed"])
def test_what_is_run_again_has_one_record(project: Project, outcome: str) -> None:
    """pytest-rerunfailures runs a test again that was timed, and then failed."""
    failing = "open('once', 'x')" if outcome == "rerun" else "pass"
    project.write(
        "test_it.py",
        f"""
        import os
        def test_it(benchmark):
            benchmark(sum, [1, 2])
            if {failing!r} != "pass" and not os.path.exists("once"):
                {failing}
                assert False
        """,
    )
    pytest.importorskip("pytest_rerunfailures")
    more = ("-p", "rerunfailures", "--reruns=1")
    project.run("--benchmark-json=measured.json", *more, fw=None)
    assert len(_stored(project)["benchmarks"]) == 1
    assert _stored(project)["fwbench"]["missing"] == []


#: A framework whose arrays exist some time after the call has returned.
_LATER = """
import threading, time

class Array:
    def __init__(self):
        self._thread = threading.Thread(target=time.sleep, args=[0.1])
        self._thread.start()
    def block_until_ready(self):
        self._thread.join()

class tree_util:
    tree_leaves = staticmethod(lambda value: [value])
"""

_ASYNCHRONOUS = """
import jax, pytest

def test_waited(benchmark):
    benchmark(jax.Array)

def test_nested(benchmark):
    benchmark.pedantic(lambda: {"a": (jax.Array(),)}, rounds=3, iterations=2)

@pytest.mark.fwbench_wait(False)
def test_marked(benchmark):
    benchmark.pedantic(jax.Array, rounds=3)

def test_nothing_to_wait_for(benchmark):
    benchmark(sum, [1, 2])
"""


#: What is recorded of a plain test that has nothing to wait for.
_CONTENTION = {
    "plain_test",
    *("others_cpus", "siblings_cpus", "idle_cpus", "queued_cpus", "throttled_cpus"),
}


def test_rounds_end_when_the_arrays_exist(project: Project) -> None:
    """One marker and one ini setting turn it off; the record tells both times."""
    project.write("packages/jax.py", _LATER)
    project.write("test_it.py", _ASYNCHRONOUS)
    project.run("--benchmark-json=measured.json", fw=None).assert_outcomes(passed=4)
    by_name = {entry["name"]: entry for entry in _stored(project)["benchmarks"]}
    for name in ("test_waited", "test_nested"):
        facts = by_name[name]["extra_info"]["fwbench"]
        assert facts["completion_s"] == by_name[name]["stats"]["median"] >= 0.1
        assert facts["dispatch_s"] < 0.05
    for name in ("test_marked", "test_nothing_to_wait_for"):
        assert by_name[name]["extra_info"].keys() == {"fwbench"}
        assert by_name[name]["extra_info"]["fwbench"].keys() == _CONTENTION
        assert by_name[name]["stats"]["median"] < 0.05
    for off in (("-o", "fw_wait=false"), ("-ofw_wait=false",)):
        project.run("--benchmark-json=measured.json", *off, fw=None)
        facts = [entry["extra_info"]["fwbench"] for entry in _stored(project)["benchmarks"]]
        assert all(of_test.keys() == _CONTENTION for of_test in facts)
    run = SampleSet.from_json("measured.json", _stored(project))
    assert len(run.samples) == 4
    shown = project.python("-m", "fwbench", "report", "measured.json", "--csv=shown.csv")
    assert shown.returncode == 0, shown.stderr


def test_launches_of_plain_benchmarks(project: Project) -> None:
    """Each is a process of its own; a run that has them is compared and shown by them."""
    project.write("test_it.py", f"import os\nprint(os.getpid(), file=open('pids', 'a'))\n{_PLAIN}")
    more = ("-p", "no:cacheprovider", "--benchmark-json=measured.json")
    project.run("--fw-launches=3", *more, fw=None).assert_outcomes(
        passed=4, failed=1, skipped=1, errors=1, xfailed=1
    )
    assert len({*(project.path / "pids").read_text(encoding="utf-8").split()}) == 3
    run = SampleSet.from_json("measured.json", _stored(project))
    assert {sample.number for sample in run.samples.values()} == {3}
    assert all(sample.has_launches and not sample.facts for sample in run.samples.values())
    shown = project.python("-m", "fwbench", "report", "measured.json", "--csv=shown.csv")
    failed = "fwbench: measured.json: 2 cases failed: test_wrong, test_broken\n"
    assert (shown.returncode, shown.stderr) == (1, failed)
    assert "test_parametrised" in (project.path / "shown.csv").read_text(encoding="utf-8")


_UNSTEADY = """
import os

IS_LATER = os.path.exists("later")
open("later", "w").close()

def test_steady(benchmark):
    benchmark(sum, [1, 2])

def test_unsteady(benchmark):
    benchmark(sum, [1, 2])
    assert not IS_LATER, "wrong now"
"""


def test_a_launch_of_a_plain_benchmark_that_fails(project: Project) -> None:
    """It counts for nothing but the exit status; what passes has all its launches."""
    project.write("test_it.py", _UNSTEADY)
    result = project.run("--fw-launches=3", "--benchmark-json=measured.json", fw=None)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*launch 2 does not count for test_it.py::test_unsteady (call failed)*", "*wrong now*"]
    )
    stored = _stored(project)
    assert stored["fwbench"]["outcome"]["failed"] == 2
    launches = {entry["name"]: len(entry["stats"]["data"]) for entry in stored["benchmarks"]}
    assert launches["test_steady"] == 3
    assert (
        not SampleSet.from_json("measured.json", stored)
        .samples["test_it.py::test_unsteady"]
        .has_launches
    )


def test_a_launch_of_plain_benchmarks_that_dies(project: Project) -> None:
    """It is said, and what the others have measured is stored."""
    project.write("test_it.py", _UNSTEADY.replace("open(", "IS_LATER and os._exit(9)\nopen("))
    result = project.run("--fw-launches=2", "--benchmark-json=measured.json", fw=None)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*launch 2 does not count for *its process ended*status 9*"])
    assert len(_stored(project)["benchmarks"]) == 2


def test_a_budget_of_plain_benchmarks(project: Project) -> None:
    """It goes to those whose time is least certain, whatever other tests take."""
    text = "def test_it(benchmark):\n    benchmark(sum, [1, 2])\n"
    text += "def test_other():\n    __import__('time').sleep(2.5)\n"
    project.write("test_it.py", text)
    more = ("--fw-budget=4s", "--fw-threshold=0.1%", "--benchmark-json=measured.json")
    result = project.run(*more, fw=None)
    (entry,) = _stored(project)["benchmarks"]
    assert len(entry["stats"]["data"]) > 1
    assert "1 plain benchmark not known" in str(result.stdout)


@tabled
def test_flags_without_effect_are_named(
    project: Project, file: str, flags: list[str], named: str
) -> None:
    """Not those of the ini file, which are for all tests; a person has just given these."""
    project.write("test_plain.py", "def test_plain(benchmark):\n    benchmark(sum, [1])\n")
    project.write("test_it.py", CASES)
    project.write("pytest.ini", "[pytest]\nfw_precision = 3%\n")
    result = project.run(file, *flags, "--benchmark-disable", fw=None)
    lines = [line for line in result.outlines if "without effect" in line]
    assert [line.rpartition(": ")[2] for line in lines] == [*filter(None, [named])]


@tabled
def test_what_would_end_in_a_traceback_is_refused(
    project: Project, flag: str, words: list[str]
) -> None:
    """Here pytest-benchmark has one of its own, after everything has been measured or before."""
    project.write("test_plain.py", "def test_plain(benchmark):\n    benchmark(sum, [1])\n")
    result = project.run(flag, fw=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [*filter(None, result.errlines)][-1] == f"ERROR: {' '.join(words)}"
    assert "Traceback" not in str(result.stderr) + str(result.stdout)
