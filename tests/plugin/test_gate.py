"""``--fw-gate``: a session fails if it is slower than the baseline, and never by the wrong one."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwbench import cli
from support.projects import Project
from support.tables import tabled

#: An operation whose work an environment variable multiplies, and one that is always the same.
_SUITE = """
import os
import numpy as np
import pytest
from fwbench import Operation

def often(times):
    def run(x):
        for _ in range(times):
            y = np.sort(x)
        return y
    return run

def sorting(name, times=lambda: 2, sizes=(3000,)):
    made = Operation(
        name=name,
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=np.sort,
        sizes=sizes,
        differentiable=False,
    )
    made.implement("numpy")(lambda np: often(times()))
    return made

slowing = sorting("slowing", lambda: int(os.environ.get("WORK", "2")))
steady = sorting("steady")

@pytest.mark.fwbench(slowing, steady)
def test_it(case):
    print(case.cell.id, file=open("measured", "a"))
    case.measure()
"""

#: Others may be at work on the machine: what they do to launches is not what is tested here. And
#: asking what the CPU is takes pytest-benchmark a second, and each fresh process another: all
#: launches of a session share one, which is killed at its end.
_CONFTEST = """
import os
from fwbench.workers.pool import WorkerPool
from fwbench.records import launches

launches.is_contended = lambda launch: "CONTENDED" in os.environ
WorkerPool.stop = lambda self: None

def pytest_benchmark_generate_machine_info():
    return {"cpu": {"brand_raw": "Fake CPU"}}
"""

#: Time of the processor, which does not run while others have it.
_INI = "[pytest]\naddopts = --benchmark-max-time=0.02 --benchmark-timer=time.thread_time\n"

_SLOWING = "slowing-numpy-cpu-eager-forward-float32-3000"
_STEADY = "steady-numpy-cpu-eager-forward-float32-3000"

#: A threshold that nothing but several times the work is beyond.
_GATE = ("--fw-launches=5", "--fw-gate=95%")

#: Where nothing has regressed: whether a busy machine could judge is not what is tested here.
_PASSING = (*_GATE, "-ofw_fail_on=regressed,missing")

_REGRESSED, _MISSING, _INCONCLUSIVE = 1, 11, 10


@pytest.fixture
def suite(project: Project) -> Project:
    """A project with two cases and no baseline."""
    project.write("test_it.py", _SUITE)
    project.write("conftest.py", _CONFTEST)
    project.write("pytest.ini", _INI)
    return project


@pytest.fixture(scope="module")
def measured() -> dict[str, str]:
    """The baseline's JSON, once it has been measured."""
    return {}


@pytest.fixture
def gated(suite: Project, measured: dict[str, str]) -> Project:
    """The project with a baseline that was set, ``baseline.json`` and two twins of it."""
    if not measured:
        suite.run("--fw-launches=5", "--benchmark-json=baseline.json").assert_outcomes(passed=2)
        measured["baseline"] = (suite.path / "baseline.json").read_text(encoding="utf-8")
        (suite.path / "measured").unlink()
    suite.write("baseline.json", measured["baseline"])
    _set(*_sessions(suite.path, "baseline", measured["baseline"]))
    return suite


def _sessions(folder: Path, name: str, text: str) -> list[str]:
    """Files of four sessions that differ by at most 3 %: a busy machine has levels of its own."""
    files = [f"{name}.json", *(f"{name}-{i}.json" for i in range(3))]
    for i, file in enumerate(files):
        output = json.loads(text)
        for entry in output["benchmarks"]:
            for launch in entry["extra_info"]["fwbench"]["launches"]:
                for figure in {"value_s", "min_s", "median_s"} & launch.keys():
                    launch[figure] *= 1 + 0.01 * i
        (folder / file).write_text(json.dumps(output), encoding="utf-8")
    return files


def _set(*files: str, status: int = 0) -> None:
    assert cli.main(["baseline", "set", *files]) == status


def _rows(result: pytest.RunResult) -> dict[str, str]:
    """The verdicts that the gate prints, by case: the worst, which comes first."""
    start = next(i for i, line in enumerate(result.outlines) if "- fwbench gate -" in line)
    rows = [line.split() for line in reversed(result.outlines[start:])]
    return {row[1]: row[0] for row in rows if len(row) > 1 and row[1] in (_SLOWING, _STEADY)}


def _assert_refused(project: Project, result: pytest.RunResult, *message: str) -> None:
    assert result.ret == pytest.ExitCode.USAGE_ERROR, str(result.stdout)
    for text in message:
        assert text in str(result.stderr)
    assert project.lines("measured") == []


def test_a_baseline_of_one_session_is_refused(gated: Project) -> None:
    """Before anything is measured: it could fail no build."""
    _set("--anyway", "baseline.json")
    result = gated.run("--fw-gate")
    _assert_refused(gated, result, "--fw-gate: baseline has one session", "(fwbench ab)")


def test_without_a_baseline(suite: Project) -> None:
    result = suite.run(*_GATE)
    _assert_refused(suite, result, "--fw-gate: there is no baseline", "fwbench baseline set FILE")


def test_a_bare_comparison_needs_the_baseline_too(suite: Project) -> None:
    """The latest run that was saved is no baseline, with or without ``--benchmark-compare``."""
    suite.run("--fw-launches=1", "--benchmark-autosave").assert_outcomes(passed=2)
    (suite.path / "measured").unlink()
    result = suite.run(*_GATE, "--benchmark-compare")
    _assert_refused(suite, result, "--fw-gate: there is no baseline", "fwbench baseline set FILE")


def test_a_damaged_baseline(gated: Project) -> None:
    made = json.loads((gated.path / "baseline.json").read_text(encoding="utf-8"))
    made["benchmarks"][-1]["extra_info"]["fwbench"]["launches"][0]["value_s"] = math.nan
    gated.write(".fwbench/baseline/baseline.json", json.dumps(made))
    messages = ("baseline.json is not a valid fwbench run", "launches[0].value_s is nan")
    _assert_refused(gated, gated.run(*_GATE), *messages)
    gated.write(".benchmarks/0001_named.json", json.dumps(made))
    _assert_refused(gated, gated.run(*_GATE, "--benchmark-compare=0001"), *messages[1:])


@tabled
def test_what_cannot_be_gated_is_refused(
    gated: Project, arguments: tuple[str, ...], said: tuple[str, ...]
) -> None:
    """Before anything is measured; with --benchmark-disable there is nothing to compare."""
    _assert_refused(gated, gated.run(*arguments), *said)


def test_collecting_needs_no_baseline(suite: Project) -> None:
    result = suite.run("--fw-gate", "--collect-only")
    assert result.ret == pytest.ExitCode.OK


def test_an_unchanged_suite_passes(gated: Project) -> None:
    result = gated.run(*_PASSING, "--benchmark-json=now.json")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert _rows(result).keys() == {_SLOWING, _STEADY}
    assert "this session against baseline: " in str(result.stdout)
    session = gated.session("now.json")
    assert sum(session["gate"]["verdicts"].values()) == 2
    assert "regressed" not in session["gate"]["verdicts"]
    assert session["outcome"] == {"failed": 0, "interrupted": False}
    _set("--anyway", "now.json")
    ignored = Path(gated.path / ".fwbench" / ".gitignore").read_text(encoding="utf-8")
    assert ignored == "*\n", "times of this machine are useless on another"


@pytest.fixture
def slowed(
    gated: Project, measured: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """The project when a slower run of it has been saved, ``.benchmarks/0001_slow.json``."""
    with monkeypatch.context() as patch:
        patch.setenv("WORK", "6")
        if "slow" not in measured:
            gated.run("--fw-launches=5", "--benchmark-json=slow.json").assert_outcomes(passed=2)
            measured["slow"] = (gated.path / "slow.json").read_text(encoding="utf-8")
        (gated.path / ".benchmarks").mkdir(exist_ok=True)
        _sessions(gated.path / ".benchmarks", "0001_slow", measured["slow"])
    return gated


def test_a_slower_suite_fails_and_does_not_become_the_baseline(
    slowed: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However often it is run again, and although every run is saved: the baseline stays."""
    monkeypatch.setenv("WORK", "6")
    result = slowed.run(
        *_GATE, "--benchmark-autosave", "--benchmark-compare", "--benchmark-json=now.json"
    )
    assert result.ret == _REGRESSED, str(result.stdout)
    assert _rows(result)[_SLOWING] == "regressed"
    assert _rows(result)[_STEADY] != "regressed"
    result.assert_outcomes(passed=2)
    (saved,) = (slowed.path / ".benchmarks").rglob("0002_*.json")
    assert slowed.session("now.json")["gate"]["verdicts"]["regressed"] == 1
    capsys.readouterr()
    for file in ("now.json", str(saved)):
        _set(file, status=2)
        assert "its gate says: 1 regressed" in capsys.readouterr().err
    kept = (slowed.path / ".fwbench" / "baseline" / "baseline.json").read_text(encoding="utf-8")
    assert kept == (slowed.path / "baseline.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("has_data", [True, False])
def test_a_named_run_is_what_is_compared_with(slowed: Project, has_data: bool) -> None:
    """``--benchmark-compare=0001`` names a saved run, slow as it was, instead of the baseline.

    It may have been saved with ``--benchmark-save-data``. The slow one takes three times as long,
    and the threshold leaves room on both sides: a CPU may be slow through all launches.
    """
    for saved in (slowed.path / ".benchmarks").iterdir():
        run = json.loads(saved.read_text(encoding="utf-8"))
        assert all(entry["stats"]["data"] for entry in run["benchmarks"])
        if not has_data:
            for entry in run["benchmarks"]:
                del entry["stats"]["data"]
            saved.write_text(json.dumps(run), encoding="utf-8")
    result = slowed.run(
        *("--fw-launches=5", "--fw-gate=70%", "-ofw_fail_on=regressed"), "--benchmark-compare=0001"
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout) + str(result.stderr)
    assert _rows(result)[_SLOWING] == "improved"


def test_a_change_cannot_set_its_own_threshold(gated: Project) -> None:
    """The base's counts; what it makes of a change is the business of tests/gate."""
    gated.write("test_it.py", _SUITE.replace("steady)\ndef", "steady, threshold=0.2)\ndef"))
    gate = "--fw-gate=95%,dispatch=70%"
    result = gated.run("--fw-launches=5", gate, "--benchmark-json=now.json")
    result.stdout.fnmatch_lines(["*: no threshold in the base, which counts, threshold 0.2 in*"])
    comparison = gated.session("now.json")["gate"]["comparison"]
    judged = {judgement["metric"]: judgement["threshold"] for judgement in comparison["judgements"]}
    assert comparison["rules"]["threshold"] == 0.95
    assert (judged["minimum"], judged["median"]) == (0.95, 0.95)
    assert (judged["dispatch"], judged["memory"]) == pytest.approx((0.7, 0.5))


def test_a_markers_threshold_is_a_fraction(suite: Project) -> None:
    suite.write("test_it.py", _SUITE.replace("steady)\ndef", "steady, threshold=2)\ndef"))
    _assert_refused(suite, suite.run("--fw-launches=1"), "threshold ", "5% or 0.05")


def test_a_failed_test_is_a_failed_session(gated: Project) -> None:
    gated.write("pytest.ini", f"{_INI}fw_gate = 95%\nfw_launches = 5\n")
    gated.write("test_other.py", "def test_other():\n    assert False\n")
    result = gated.run("--benchmark-json=now.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert _rows(result).keys() == {_SLOWING, _STEADY}
    assert gated.session("now.json")["outcome"]["failed"] == 1
    _set("now.json", status=2)


#: Cases that the baseline has and a session has not, by the reasons that it gives.
_GONE = {
    "chosen": "deselected",
    "skipping": "skipped: not here",
    "moved": "renamed to test_it.py::test_other[",
    "dropped": "not collected",
}

_REMAINING = """
chosen, skipping, moved = map(sorting, ("chosen", "skipping", "moved"))

@pytest.mark.fwbench(chosen, skipping, steady)
def test_it(case):
    if "skipping" in case.cell.id:
        pytest.skip("not here")
    case.measure()

@pytest.mark.fwbench(moved)
def test_other(case):
    case.measure()
"""


def test_missing_cases_fail(gated: Project) -> None:
    gated.write("test_it.py", _SUITE + _REMAINING)
    for path in (gated.path / ".fwbench" / "baseline").iterdir():
        stored = json.loads(path.read_text(encoding="utf-8"))
        slowing, steady = stored["benchmarks"]
        gone = [json.loads(json.dumps(slowing).replace("slowing", name)) for name in _GONE]
        path.write_text(json.dumps({**stored, "benchmarks": [*gone, steady]}), encoding="utf-8")
    result = gated.run(*_GATE, "-k", "not chosen")
    assert result.ret == _MISSING, str(result.stdout)
    rows = [line for line in result.outlines if line.startswith("missing")]
    assert len(rows) == len(_GONE)
    for name, reason in _GONE.items():
        (row,) = (row for row in rows if _SLOWING.replace("slowing", name) in row)
        assert reason in row
    assert rows[-1] == f"missing: 1 case, deselected: {_SLOWING.replace('slowing', 'chosen')}"


def test_skipped_benchmarks_fail(gated: Project) -> None:
    result = gated.run(*_GATE, "--benchmark-skip")
    assert result.ret == _MISSING, str(result.stdout)
    assert {*_rows(result).values()} == {"missing"}
    assert gated.lines("measured") == []


def test_a_session_without_cases_does_not_pass(gated: Project) -> None:
    """Nothing passes in silence: a gate that was asked for and compares nothing fails."""
    (gated.path / "test_it.py").unlink()
    gated.write("test_other.py", "def test_other():\n    pass\n")
    result = gated.run(*_GATE, fw=None)
    result.assert_outcomes(passed=1)
    assert result.ret != pytest.ExitCode.OK


def test_a_gate_that_judges_nothing_is_not_green(
    gated: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 10 by default, and the first line says so; it may pass, as missing cases may."""
    monkeypatch.setenv("CONTENDED", "1")
    result = gated.run(*_GATE)
    assert result.ret == _INCONCLUSIVE
    start = next(i for i, line in enumerate(result.outlines) if "- fwbench gate -" in line)
    first = "nothing could be judged: all 2 cases are inconclusive"
    assert result.outlines[start + 1] == first
    result = gated.run(*_GATE, "-k", "steady", "-ofw_fail_on=regressed")
    assert result.ret == pytest.ExitCode.OK
    assert _rows(result) == {_STEADY: "inconclusive"}
    assert f"missing: 1 case, deselected: {_SLOWING}" in result.outlines


def test_differences_are_refused_unless_allowed(gated: Project) -> None:
    """By name, as a usage error that the session's run has, too.

    The option that allows them is pytest's, not that of ``fwbench gate``.
    """
    path = gated.path / ".fwbench" / "baseline" / "baseline.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    for entry in stored["benchmarks"]:
        entry["extra_info"]["fwbench"].update(framework_version="0.9")
    facts = stored["benchmarks"][0]["extra_info"]["fwbench"]
    of_threads = {name: "77" for name in facts["toggles"] if name.endswith("_NUM_THREADS")}
    facts.update(threads=77, toggles={**facts["toggles"], **of_threads})
    path.write_text(json.dumps(stored), encoding="utf-8")
    differences = ("threads: 77 -> ", "framework: 0.9 -> ")
    result = gated.run(*_GATE, "--fw-allow-different=cpu", "--benchmark-json=now.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--fw-allow-different" in str(result.stdout)
    assert "- fwbench gate -" not in str(result.stdout)
    assert all(text in str(result.stdout) for text in differences)
    assert all(text in gated.session("now.json")["gate"]["problem"] for text in differences)
    result = gated.run(*_PASSING, "--fw-allow-different=threads,framework")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert all(text in str(result.stdout) for text in differences)


def test_other_threads_are_refused_before_anything_is_measured(gated: Project) -> None:
    """A session of minutes would be for nothing."""
    result = gated.run(*_GATE, "--fw-threads=1")
    _assert_refused(gated, result, "--fw-gate: baseline has been measured with --fw-threads=2")
    result = gated.run(*_PASSING, "--fw-threads=1", "--fw-allow-different=threads")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)


def test_an_interrupted_run_is_not_judged_nor_becomes_the_baseline(
    gated: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cases are not all there, or not all alike."""
    gated.write("test_last.py", "def test_last():\n    raise KeyboardInterrupt\n")
    result = gated.run(*_GATE, "--benchmark-json=now.json")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(gated.entries("now.json")) == 2
    assert "- fwbench gate -" not in str(result.stdout)
    assert gated.session("now.json")["gate"] is None
    _set("now.json", status=2)
    assert "it was interrupted" in capsys.readouterr().err


def test_plain_pytest_benchmark_does_not_become_the_baseline(
    suite: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without fwbench's facts does not say how its session ended."""
    (suite.path / "test_it.py").unlink()
    suite.write("test_plain.py", "def test_plain(benchmark):\n    benchmark(sum, [1, 2])\n")
    without = ("-p", "no:fwbench", "-o", "addopts=")
    suite.run_exactly("--benchmark-json=now.json", *without).assert_outcomes(passed=1)
    _set("now.json", status=2)
    assert "fwbench did not write it" in capsys.readouterr().err
