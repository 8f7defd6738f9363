"""Some cases are measured a second time at the end, which shows how far medians repeat."""

import math
import re
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from fwbench.measure.condition import CLEAN, CONTENDED
from fwbench.plugin import runner
from fwbench.plugin.runner import IsolatedRunner, Visit, spread, visit_of
from fwbench.plugin.session import CELL
from support.launched_runs import Clock
from support.projects import QUICKLY, Project, measuring
from support.tables import tabled
from support.terminals import Terminal, entry

#: Four cases; each writes who measures it, and the condition of all is clean.
_VISITED = measuring(
    "double, twice",
    "import os",
    body="""
        with open("order", "a") as file:
            print(os.getpid(), case.cell.id, file=file)
        case.measure()
        case.benchmark.extra_info["fwbench"]["condition"] = "clean"
        {end}
    """,
)


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
    about = {"schedule": None, "gang": (), "workload": SimpleNamespace(name="gemm"), **cell}
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
            _item("numpy", 1e-6, 0.01, schedule=object()),
            _item("numpy", 1e-6, 0.01, gang=("replicas",)),
            _item("numpy", 1e-8, 0.01, workload=SimpleNamespace(name="noop")),
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
    options = SimpleNamespace(revisit=asked)
    session = SimpleNamespace(options=options, plan=None, revisits=None)
    fake: Any = Mock(session=session, visits=visits)
    fake.load.side_effect = lambda _: take(1.0)
    fake.run.side_effect = lambda _: take(took_s)
    IsolatedRunner.revisit(fake, Mock(), session_s)
    assert sum(each.cases for each in (session.revisits or {}).values()) == visited


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
