"""Every case is measured in several fresh processes, and they become one record."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fwbench.records.launches import LaunchPlan
from support.projects import QUICKLY, Project, measuring

# A session


def _test(trouble: str = "", marker: str = "double, twice") -> str:
    """A test of cases that say who measures them; ``trouble`` may do more to the case ``name``."""
    return measuring(
        marker,
        "import os, signal, time",
        "from pathlib import Path",
        "from fwbench.workloads import sigmoid, tanh",
        body=f"""
            name = case.cell.id
            with open("order", "a") as file:
                print(os.getpid(), name, file=file)
            order = Path("order").read_text().splitlines()
            launch = sum(line.endswith(name) for line in order)
            {trouble}
            case.measure()
        """,
    )


_IDS = [
    f"{operation}-numpy-cpu-eager-forward-float32-{size}"
    for operation in ("double", "twice")
    for size in (4, 8)
]


def _nodeid(name: str) -> str:
    return f"test_it.py::test_it[{name}]"


@pytest.fixture
def ordered(project: Project) -> Project:
    """A project whose four cases write into ``order`` which process measures them."""
    project.write("test_it.py", _test())
    return project


def _order(project: Project) -> list[tuple[str, str]]:
    """Who has measured what, as it came: process and case id."""
    pairs = [line.split(" ") for line in project.lines("order")]
    return [(pid, name) for pid, name in pairs]


def _by_process(project: Project) -> list[list[str]]:
    """The cases of every process, in its order; processes as they came."""
    figures: dict[str, list[str]] = {}
    for pid, name in _order(project):
        figures.setdefault(pid, []).append(name)
    return [*figures.values()]


@pytest.mark.usefixtures("started")
def test_launches_are_processes_and_one_record(ordered: Project) -> None:
    result, records = ordered.measure("--fw-launches=2")
    result.assert_outcomes(passed=4)
    assert len(ordered.entries("measured.json")) == 4
    orders = _by_process(ordered)
    assert [sorted(order) for order in orders] == [sorted(_IDS)] * 2
    for entry in records.values():
        facts = entry["extra_info"]["fwbench"]
        kept = facts["launches"]
        assert [launch["launch"] for launch in kept] == [0, 1]
        assert entry["stats"]["data"] == [min(launch["rounds_s"]) for launch in kept]
        assert entry["stats"]["rounds"] == 2
        assert entry["stats"]["min"] == min(entry["stats"]["data"])
        assert all(launch["wall_s"] > 0 for launch in kept)
        assert {"cpu_s", "preempted", "others_cpus", "load"} <= kept[0].keys()
        assert {"median_interval", "stopped"} <= kept[0].keys()
    result.stdout.fnmatch_lines([f"fwbench: launch {launch} of 2: 4 cases" for launch in (1, 2)])


def test_first_calls_are_measured_in_fresh_processes(ordered: Project) -> None:
    """In the first launch every case has one of its own; the others are shared as ever."""
    _, records = ordered.measure("--fw-launches=2", "-ofw_first_call=fresh")
    assert sorted(map(len, _by_process(ordered))) == [1, 1, 1, 1, 4]
    for entry in records.values():
        facts = entry["extra_info"]["fwbench"]
        first, second = facts["launches"]
        assert facts["first_call_s"] == first["first_call_s"] == first["first_call_in_process_s"]
        assert "first_call_s" not in second
        assert second["first_call_in_process_s"] > 0


def test_the_seed_is_printed_and_stored(ordered: Project) -> None:
    result, _ = ordered.measure("--fw-launches=3")
    printed = re.search(r"every case 3 times.*--fw-seed (\d+)", str(result.stdout))
    assert printed is not None
    assert ordered.session()["launches"] == {"launches": 3, "seed": int(printed[1])}
    plan = LaunchPlan(3, int(printed[1]))
    assert _by_process(ordered) == [plan.order(launch, _IDS, _nodeid) for launch in range(3)]


def test_frameworks_are_shuffled_too(project: Project) -> None:
    project.install_pool()
    project.write("test_it.py", _test(marker="sigmoid, tanh, sizes=(4, 5)"))
    result = project.run("--fw-launches=2", "--fw-seed=1", fw="numpy,pool")
    result.assert_outcomes(passed=8)
    pids = [pid for pid, _ in _order(project)]
    frameworks = {pid: name.split("-")[1] for pid, name in _order(project)}
    assert sorted(frameworks.values()) == ["numpy", "numpy", "pool", "pool"]
    for launch in (pids[:8], pids[8:]):
        assert len({*launch}) == 2
        changes = sum(first != other for first, other in itertools.pairwise(launch))
        assert changes > 1, "one framework after the other is no mixture"
    assert not {*pids[:8]} & {*pids[8:]}


def test_a_damaged_value_is_named_before_anything_is_compared(ordered: Project) -> None:
    ordered.run("--fw-launches=1", "--benchmark-save=first").assert_outcomes(passed=4)
    (saved,) = (ordered.path / ".benchmarks").rglob("*.json")
    run = json.loads(saved.read_text(encoding="utf-8"))
    run["benchmarks"][0]["extra_info"]["fwbench"]["load"] = "high"
    saved.write_text(json.dumps(run), encoding="utf-8")
    result = ordered.run("--fw-launches=1", "--benchmark-compare=0001")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    case = run["benchmarks"][0]["param"]
    message = (
        f"--benchmark-compare: 0001_first.json is not a valid fwbench run: {case}: load is 'high'"
    )
    assert message in str(result.stderr)


def test_pytest_benchmark_compares_them(ordered: Project) -> None:
    """Its own option and its own command take such files for what they are."""
    ordered.run("--fw-launches=2", "--benchmark-save=first").assert_outcomes(passed=4)
    result = ordered.run("--fw-launches=1", "--benchmark-compare=0001")
    result.assert_outcomes(passed=4)
    compared = [line for line in result.outlines if line.startswith("test_it")]
    assert sum("(NOW)" in line for line in compared) == 4
    assert sum("(0001_first)" in line for line in compared) == 4
    command = ordered.python("-m", "pytest_benchmark", "compare", "0001")
    assert command.stdout.count("test_it[") >= 4


def test_a_failure_says_in_which_launch(ordered: Project) -> None:
    """A case that fails in the second launch is one failed case, without a record."""
    trouble = f'assert not (name == {_IDS[0]!r} and launch == 2), "this went wrong"'
    ordered.write("test_it.py", _test(trouble))
    result, records = ordered.measure("--fw-launches=3", "--junitxml=junit.xml")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*this went wrong*", "*this was launch 2*"])
    assert str(result.stdout).count("this was launch") == 1
    assert sorted(records) == sorted(_IDS[1:])
    assert all(len(entry["stats"]["data"]) == 3 for entry in records.values())
    measured = [name for _, name in _order(ordered)]
    assert measured.count(_IDS[0]) == 2, "what has failed is not launched again"
    outcomes = [outcome.kind for outcome in ordered.outcomes().values()]
    assert sorted(outcomes) == ["failure", "passed", "passed", "passed"]
    missing = [entry for entry in ordered.session()["missing"] if _IDS[0] in entry["nodeid"]]
    assert [entry["why"] for entry in missing] == ["call failed"]


def test_enough_failures_stop_launches(ordered: Project) -> None:
    ordered.write("test_it.py", _test("assert len(order) < 6"))
    result = ordered.run("--fw-launches=3", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] == 1
    assert len(_order(ordered)) == 6
    assert "fwbench: launch 2 of 3: 4 cases" in result.outlines
    assert "launch 3 of 3" not in str(result.stdout)


def test_failures_that_are_not_enough(ordered: Project) -> None:
    ordered.write("test_it.py", _test("assert len(order) != 2"))
    result = ordered.run("--fw-launches=2", "--maxfail=2")
    result.assert_outcomes(passed=3, failed=1)
    assert len(_order(ordered)) == 4 + 3


def test_a_worker_that_dies_in_one_launch(ordered: Project) -> None:
    """The case that killed it has failed in that launch; the others have all their launches."""
    trouble = f"if name == {_IDS[1]!r} and launch == 2: os.kill(os.getpid(), signal.SIGKILL)"
    ordered.write("test_it.py", _test(trouble))
    result, records = ordered.measure("--fw-launches=2")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*this was launch 2*"])
    assert sorted(records) == sorted({*_IDS} - {_IDS[1]})
    assert all(len(entry["stats"]["data"]) == 2 for entry in records.values())


def test_nothing_is_launched_twice_to_be_verified(ordered: Project) -> None:
    result = ordered.run("--fw-launches=3", "--benchmark-disable", "--fw-direction=forward")
    passed = result.parseoutcomes()["passed"]
    assert len(_order(ordered)) == passed
    assert len({name for _, name in _order(ordered)}) == passed
    assert "launch 1 of" not in str(result.stdout)


_BESIDE = """
import pytest
from declared import double, twice

@pytest.mark.fwbench(double)
def test_measured(case):
    case.measure()

@pytest.mark.skip(reason="not today")
@pytest.mark.fwbench(double)
def test_marked(case):
    case.measure()

@pytest.mark.fwbench(twice, sizes=4)
def test_skips_itself(case):
    print("skipping", file=open("skipping", "a"))
    pytest.skip("not here")

def test_ordinary():
    print("ordinary", file=open("ordinary", "a"))

def test_plain(benchmark):
    print("plain", file=open("plain", "a"))
    benchmark(sum, [1, 2])
"""


def test_what_is_beside_cases(project: Project) -> None:
    """Ordinary tests run once, benchmarks that are no cases in every launch, skips stay skips."""
    project.write("test_it.py", _BESIDE)
    result = project.run(
        "--fw-launches=3", "--junitxml=junit.xml", "-v", "--benchmark-json=measured.json"
    )
    result.assert_outcomes(passed=4, skipped=3)
    assert project.lines("ordinary") == ["ordinary"]
    assert project.lines("plain") == ["plain"] * 3
    entries = {entry["name"]: entry for entry in project.entries("measured.json")}
    assert len(entries) == 3
    plain = entries.pop("test_plain")
    assert "workload" not in plain["extra_info"]["fwbench"]
    assert len(plain["stats"]["data"]) == 3
    assert all(len(entry["stats"]["data"]) == 3 for entry in entries.values())
    names = [
        test.attrib["name"]
        for test in ET.parse(project.path / "junit.xml").iter("testcase")  # noqa: S314 (our own)
    ]
    assert len(names) == 7
    assert len({*names}) == 7
    for name in names:
        lines = [line for line in result.outlines if line.startswith(f"test_it.py::{name} ")]
        assert len(lines) == 1, name
    reasons = {entry["nodeid"]: entry["why"] for entry in project.session()["missing"]}
    marked = [name for name in names if name.startswith("test_marked")]
    (itself,) = (name for name in names if name.startswith("test_skips_itself"))
    assert reasons == {
        **{f"test_it.py::{name}": "skipped: not today" for name in marked},
        f"test_it.py::{itself}": "skipped: not here",
    }


def test_one_launch_is_one(ordered: Project) -> None:
    result, records = ordered.measure("--fw-launches=1", "--fw-seed=3")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*every case once, each time in a fresh process*--fw-seed 3"])
    assert _by_process(ordered) == [LaunchPlan(1, 3).order(0, _IDS, _nodeid)]
    assert all(len(entry["stats"]["data"]) == 1 for entry in records.values())
    assert all(len(e["extra_info"]["fwbench"]["launches"]) == 1 for e in records.values())


def test_without_launches_nothing_is_shuffled(ordered: Project) -> None:
    result, records = ordered.measure()
    assert [name for _, name in _order(ordered)] == _IDS
    assert len(_by_process(ordered)) == 1
    assert "fresh process" not in str(result.stdout)
    assert all("launches" not in e["extra_info"]["fwbench"] for e in records.values())
    assert ordered.session()["launches"] is None


def test_the_ini_file_may_ask_for_launches(ordered: Project) -> None:
    ordered.write("pytest.ini", "[pytest]\nfw_launches = 2\nfw_seed = 5\n")
    ordered.run().assert_outcomes(passed=4)
    assert len(_by_process(ordered)) == 2


_PATIENCE_S = 60.0
_STUCK = "if len(order) == 6: Path('stuck').touch(); time.sleep(600)"


@pytest.fixture
def stuck(ordered: Project) -> Iterator[subprocess.Popen[str]]:
    """A session that has measured one case in its second launch, and hangs in the next."""
    ordered.write("test_it.py", _test(_STUCK))
    arguments = ["--fw=numpy", "--fw-launches=3", "--benchmark-json=measured.json"]
    with ordered.forking():
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *QUICKLY, *arguments],
            cwd=ordered.path,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until, f"{path.name} was not written"
        time.sleep(0.05)


def test_an_interrupt_keeps_what_was_launched(
    ordered: Project, stuck: subprocess.Popen[str]
) -> None:
    """After Ctrl-C in launch 2 the JSON has every launch that was over, and so has the journal.

    The JSON says that the session was interrupted.
    """
    _wait_for(ordered.path / "stuck", stuck)
    stuck.send_signal(signal.SIGINT)
    output, _ = stuck.communicate(timeout=_PATIENCE_S)
    assert stuck.returncode == pytest.ExitCode.INTERRUPTED, output
    names = [name for _, name in _order(ordered)]
    repeated, stuck_in = names[4:]
    stored = ordered.records("measured.json")
    assert sorted(stored) == sorted(_IDS)
    for name, entry in stored.items():
        kept = entry["extra_info"]["fwbench"]["launches"]
        assert [launch["launch"] for launch in kept] == ([0, 1] if name == repeated else [0]), name
        assert entry["stats"]["data"] == [launch["value_s"] for launch in kept]
    assert stuck_in != repeated
    assert ordered.session()["outcome"] == {"failed": 0, "interrupted": True}
    ordered.python("-m", "fwbench", "recover", "-o", "recovered.json").check_returncode()
    assert ordered.records("recovered.json") == stored


def test_a_kill_leaves_a_journal_of_launches(
    ordered: Project, stuck: subprocess.Popen[str]
) -> None:
    """``fwbench recover`` writes merged records with statistics."""
    _wait_for(ordered.path / "stuck", stuck)
    os.killpg(stuck.pid, signal.SIGKILL)
    stuck.communicate(timeout=_PATIENCE_S)
    assert not (ordered.path / "measured.json").exists()
    ordered.python("-m", "fwbench", "recover", "-o", "recovered.json").check_returncode()
    recovered = ordered.records("recovered.json")
    assert sorted(recovered) == sorted(_IDS)
    repeated = _order(ordered)[4][1]
    stats = recovered[repeated]["stats"]
    assert len(stats["data"]) == 2
    assert stats["rounds"] == 2
    assert stats["median"] == pytest.approx(sum(stats["data"]) / 2)
