"""Medians of an earlier session, or of cases measured once more, show how far they repeat."""

import math
import re
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from fwbench.measure.condition import CLEAN, CONTENDED
from fwbench.plugin import revisits, runner
from fwbench.plugin.revisits import Visit, spread, visit_of
from fwbench.plugin.runner import IsolatedRunner
from fwbench.plugin.session import CELL
from support.launched_runs import Clock
from support.projects import QUICKLY, Project, measuring
from support.tables import tabled
from support.terminals import Terminal, entry

#: A case that writes who measures it, and whose condition is clean.
_BODY = """
    with open("order", "a") as file:
        print(os.getpid(), case.cell.id, file=file)
    case.measure()
    case.benchmark.extra_info["fwbench"]["condition"] = "clean"
    {end}
"""

#: Four cases of a user's operations.
_VISITED = measuring("double, twice", "import os", body=_BODY)


@pytest.fixture
def visited(project: Project) -> Project:
    """A project whose four cases write into ``order`` which process measures them."""
    project.write("test_it.py", _VISITED.format(end=""))
    return project


def _visits(project: Project) -> dict[str, list[str]]:
    """The processes that have measured each case."""
    processes: dict[str, list[str]] = {}
    for pid, name in (line.split() for line in project.lines("order")):
        processes.setdefault(name, []).append(pid)
    return processes


def test_cases_are_revisited_in_fresh_processes(visited: Project) -> None:
    """The records are of the first visits; what is said follows from both."""
    result, records = visited.measure("--fw-revisit=3")
    result.assert_outcomes(passed=4)
    assert [len({*pids}) for pids in _visits(visited).values()].count(2) == 3
    recorded = visited.session()["revisits"]["numpy"]
    assert (recorded["cases"], len(recorded["pairs"]), len(records)) == (3, 3, 4)
    by_nodeid = {entry["fullname"]: entry for entry in records.values()}
    squares = []
    for nodeid, (first_s, second_s) in recorded["pairs"].items():
        assert first_s == by_nodeid[nodeid]["extra_info"]["fwbench"]["completion_s"] != second_s
        squares.append(math.log(second_s / first_s) ** 2)
    assert recorded["sd"] == pytest.approx(math.sqrt(sum(squares) / 6))
    result.stdout.re_match_lines(
        [r"medians here repeat to within \d+ % \(numpy\): 3 cases revisited"]
    )
    assert "[100%]" in str(result.stdout)


def test_second_visits_are_shown_while_they_last(visited: Project) -> None:
    """Below pytest's line, which stays whole."""
    visited.write(
        "packages/often.py", "from fwbench.plugin import lines\nlines._TERMINAL_S = 0.0\n"
    )
    terminal = Terminal(columns=120)
    command = [sys.executable, "-m", "pytest", "--fw=numpy", *QUICKLY, "-p", "often"]
    with visited.forking():
        status = terminal.run([*command, "--fw-revisit=2"], visited.path)
    assert status == pytest.ExitCode.OK, terminal.shown
    assert "revisiting, case 1 of 2" in terminal.written
    assert "revisiting" not in "".join(terminal.shown)
    assert any(re.fullmatch(r"test_it\.py \.\.\.\. +\[100%\]", line) for line in terminal.shown)


def test_contended_cases_show_nothing_and_are_counted(project: Project) -> None:
    """An upper bound in either visit is no median, and more revisits are not advised."""
    body = _BODY.format(
        end="""
    if 'double' in case.cell.id or revisited:
        case.benchmark.extra_info["fwbench"]["condition"] = "contended"
    """
    ).replace(
        "with open",
        "revisited = os.path.exists('order') and case.cell.id in "
        "open('order').read()\n    with open",
        1,
    )
    project.write("test_it.py", measuring("double, twice", "import os", body=body))
    result, _ = project.measure("--fw-revisit=3")
    result.assert_outcomes(passed=4)
    recorded = project.session()["revisits"]["numpy"]
    assert (recorded["cases"], recorded["contended"], recorded["pairs"]) == (0, 3, {})
    result.stdout.fnmatch_lines(
        ["medians are assumed to repeat to within 5 %: 0 cases revisited, *; 3 had to share *"]
    )


@tabled
def test_nothing_is_revisited(project: Project, end: str, arguments: tuple[str, ...]) -> None:
    project.write("test_it.py", _VISITED.format(end=end))
    result = project.run("--benchmark-json=measured.json", *arguments)
    launches = 2 if "--fw-launches=2" in arguments else 1
    assert {len(pids) for pids in _visits(project).values()} == {launches}
    assert "here repeat" not in str(result.stdout)
    if "--benchmark-disable" not in arguments:
        assert project.session()["revisits"] is None


def _item(framework: str, median_s: float, took_s: float, **cell: Any) -> tuple[Any, Visit]:
    about = {"gang": (), "workload": SimpleNamespace(name="gemm", cold=False), **cell}
    stash = {CELL: SimpleNamespace(**about, framework=framework)}
    item = SimpleNamespace(stash=stash, name=(framework, took_s))
    traits = framework, round(math.log10(median_s)), ("linalg", "forward")
    item.nodeid = id(item)
    return _Hashed(item), Visit(median_s, took_s, traits)


class _Hashed(SimpleNamespace):
    """An item by its identity."""

    __hash__ = object.__hash__

    def __init__(self, item: SimpleNamespace) -> None:
        super().__init__(**vars(item))


def test_frameworks_then_times_are_spread_and_cheap_cases_come_first() -> None:
    visits = dict(
        [
            *(_item("torch", 1e-6, took_s) for took_s in (0.3, 0.1, 0.2)),
            *(_item("torch", 1e-3, took_s) for took_s in (2.0, 3.0)),
            *(_item("numpy", 1e-6, took_s) for took_s in (0.7, 0.6)),
            _item("numpy", 1e-6, 0.01, workload=SimpleNamespace(name="lenet", cold=True)),
            _item("numpy", 1e-6, 0.01, gang=("replicas",)),
            _item("numpy", 1e-8, 0.01, workload=SimpleNamespace(name="noop", cold=False)),
        ]
    )
    chosen = [item.name for item in spread(visits, 5)]
    assert chosen == [
        *(("torch", 0.1), ("numpy", 0.6), ("torch", 2.0), ("numpy", 0.7), ("torch", 3.0))
    ]
    assert len(spread(visits, 12)) == 7


@tabled
def test_time_is_limited(
    asked: int | None,
    session_s: float,
    took_s: float,
    visited: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=clock))

    def take(seconds: float) -> list[Any]:
        clock.now_s += seconds
        return [SimpleNamespace(duration=seconds, fwbench={"entry": entry("torch", 1e-3)})]

    names = ["torch", "numpy"] * 15
    visits = dict(_item(name, 1e-3, took_s) for name in names)
    fake: Any = Mock(visits=visits)
    fake.load.side_effect = lambda _: take(1.0)
    fake.run.side_effect = lambda _: take(took_s)
    nothing = Mock(**{"pairs.return_value": {}})
    again = partial(IsolatedRunner.revisit, fake)
    repeated = revisits.repeated(visits, nothing, asked, session_s, again)
    assert sum(each.cases for each in repeated.values()) == visited
    late = sum(each.late or 0 for each in repeated.values())
    assert late == (0 if not repeated else min(asked or 12, 30) - visited)


@pytest.mark.parametrize("condition", [CLEAN, CONTENDED])
def test_upper_bounds_are_no_visits(condition: str) -> None:
    report: Any = SimpleNamespace(
        duration=0.5, fwbench={"entry": entry("torch", 1e-3, condition=condition)}
    )
    visit = visit_of(report)
    assert (visit is None) == (condition == CONTENDED)
    assert visit is None or (visit.median_s, visit.took_s) == (1e-3, 0.5)


def test_a_recovered_session_has_its_revisits(visited: Project) -> None:
    """Without a file of one's own, charts come from the journal: they are to say the same."""
    visited.measure("--fw-revisit=3")
    visited.python("-m", "fwbench", "recover", "-o", "recovered.json")
    stored, recovered = visited.session(), visited.session("recovered.json")
    assert recovered["revisits"] == stored["revisits"]
    assert recovered["missing"] == stored["missing"]
    assert recovered["outcome"] == stored["outcome"]


# An earlier session


#: Six cases of fwbench's own operations.
_OWN = measuring(
    "exp, sin, tanh, sizes=(4, 8), executions='eager'",
    "import os",
    "from fwbench.workloads import exp, sin, tanh",
    body=_BODY.format(end=""),
)


@pytest.fixture
def measured_before(project: Project) -> Project:
    """A project whose six cases have been measured in a session."""
    project.write("test_it.py", _OWN)
    result, _ = project.measure()
    result.stdout.fnmatch_lines(["medians are assumed to repeat to within 5 %: *"])
    return project


def test_the_medians_of_an_earlier_session_show_it(measured_before: Project) -> None:
    """Nothing is measured again for it, in sessions of any length."""
    before = measured_before.records("measured.json")
    result, records = measured_before.measure()
    result.stdout.re_match_lines(
        [r"medians here repeat to within \d+ % \(numpy\): by 6 cases of an earlier session"]
    )
    assert [len(pids) for pids in _visits(measured_before).values()] == [2] * 6
    recorded = measured_before.session()["revisits"]["numpy"]
    assert (recorded["cases"], recorded["earlier"]) == (6, True)
    medians_s = {
        entry["fullname"]: [entry["stats"]["median"], before[name]["stats"]["median"]]
        for name, entry in records.items()
    }
    assert recorded["pairs"] == medians_s


def test_cases_of_both_sessions_are_compared(measured_before: Project) -> None:
    """Medians of cases that the last one did not measure are kept."""
    measured_before.measure("--fw-size=4")
    assert measured_before.session()["revisits"]["numpy"]["cases"] == 3
    measured_before.measure("--fw-size=8")
    assert measured_before.session()["revisits"]["numpy"]["cases"] == 3


@tabled
def test_no_earlier_session_counts(measured_before: Project, arguments: tuple[str, ...]) -> None:
    """It had other settings, or another answer was asked for."""
    measured_before.measure(*arguments)
    revisits = measured_before.session()["revisits"]
    assert revisits is None or "earlier" not in revisits["numpy"]


def test_sessions_with_other_options_forget_nothing(measured_before: Project) -> None:
    """But the oldest of many: versions and options come and go."""
    measured_before.write(
        "packages/few.py", "from fwbench.plugin import revisits\nrevisits._STATES_AT_MOST = 2\n"
    )
    known = []
    for seconds in (0.02, 0.01, 0.02, 0.03, 0.01):
        measured_before.measure("-p", "few", f"--fw-warmup={seconds}")
        known.append(measured_before.session()["revisits"] is not None)
    assert known == [False, False, True, False, False]


def test_frameworks_that_have_changed_begin_anew(project: Project) -> None:
    """A case may be slower for it, which is not how far medians repeat."""
    project.install_pool()
    project.write("test_it.py", _OWN)
    asked = {"fw": "numpy,pool"}
    for cases in (None, {"numpy": 6, "pool": 2}):
        project.measure(**asked)
        revisits = project.session()["revisits"]
        assert (revisits and {name: each["cases"] for name, each in revisits.items()}) == cases
    file = project.packages / "pool_framework.py"
    file.write_text(f"{file.read_text()}\n# changed\n")
    project.measure(**asked)
    assert [*project.session()["revisits"]] == ["numpy"]


def test_functions_of_a_user_do_not_count(project: Project) -> None:
    """They may have been made faster."""
    project.write("test_it.py", _VISITED.format(end=""))
    for _ in range(2):
        project.measure()
        assert project.session()["revisits"] is None


@pytest.mark.parametrize(
    "damage",
    ["", "[]", '{"numpy": 1}', '{"numpy": {"of": "x", "medians_s": []}}', "[" * 100_000],
    ids=["empty", "list", "number", "no medians", "deep"],
)
def test_damaged_medians_are_none(measured_before: Project, damage: str) -> None:
    measured_before.write(".pytest_cache/v/fwbench/medians", damage)
    result, _ = measured_before.measure()
    result.assert_outcomes(passed=6)
    assert measured_before.session()["revisits"] is None
    measured_before.measure()
    assert measured_before.session()["revisits"]["numpy"]["cases"] == 6
