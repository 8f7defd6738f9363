"""Cases that do the same work are measured by turns: alive together, in processes of their own."""

from typing import Any

import pytest

from support.projects import Project, measuring

_FW = "numpy,pool"
_THREE = ("--fw-execution=eager,inline", "--fw-size=4,8", "--fw-threads=1")

#: Rows of three cases: NumPy, and two executions of another framework. One of them may do more.
_ROWS = measuring(
    "tanh",
    "import os, time",
    "from fwbench.workloads import tanh",
    body="""
        with open("order", "a") as file:
            print(os.getpid(), case.cell.id, file=file)
        if case.cell.execution == "inline" and case.cell.size == 4:
            {inline}
        case.measure()
    """,
)


@pytest.fixture
def rows(project: Project) -> Project:
    project.install_pool()
    project.write("test_it.py", _ROWS.format(inline="pass"))
    return project


def _turns(records: dict[str, Any]) -> dict[str, list[list[float]]]:
    """The visits of the cases of each row."""
    visits_s: dict[str, list[list[float]]] = {}
    for entry in records.values():
        turns = entry["extra_info"]["fwbench"].get("turns")
        if turns is not None:
            visits_s.setdefault(turns["row"], []).append(turns["visits_s"])
            rounds_s = entry["stats"]["data"]
            # Rounds are those of visits, but not while a CPU was slow.
            assert min(turns["visits_s"]) <= max(rounds_s)
            assert max(turns["visits_s"]) >= min(rounds_s)
    return visits_s


def test_cases_of_a_row_take_turns(rows: Project) -> None:
    """With as many visits; executions of one framework in two processes, which stay."""
    result, records = rows.measure(*_THREE, fw=_FW)
    result.assert_outcomes(passed=6)
    visits_s = _turns(records)
    assert sorted(map(len, visits_s.values())) == [3, 3]
    assert all(len({*map(len, each)}) == 1 for each in visits_s.values())
    pids: dict[str, list[str]] = {}
    for pid, name in map(str.split, rows.lines("order")):
        pids.setdefault(name.rpartition("-")[0], []).append(pid)
    assert [len({*each}) for each in pids.values()] == [1, 1, 1]
    assert len({pid for each in pids.values() for pid in each}) == 3
    for entry in records.values():
        assert entry["extra_info"]["fwbench"]["others_cpus"] is not None
    _, later = rows.measure(*_THREE, "--fw-size=4", fw=_FW)
    assert not visits_s.keys() & _turns(later).keys(), "visits of two sessions are not adjacent"


@pytest.mark.parametrize(
    "inline",
    ["assert False", "os.kill(os.getpid(), 9)", "time.sleep(100)"],
    ids=["fails", "dies", "hangs"],
)
def test_one_of_a_row_that_is_lost(rows: Project, inline: str) -> None:
    """The others have their turns, and do not lose the time for which they have waited."""
    rows.write("test_it.py", _ROWS.format(inline=inline))
    result, records = rows.measure(*_THREE, "--fw-timeout=6", fw=_FW)
    result.assert_outcomes(passed=5, failed=1)
    assert sorted(map(len, _turns(records).values())) == [2, 3]


def test_a_row_says_which_case_it_waits_for(rows: Project) -> None:
    """Every minute, which is a second here."""
    rows.write("test_it.py", _ROWS.format(inline="time.sleep(100)"))
    rows.write("conftest.py", "from fwbench.turns import referee\nreferee.LONG_S = 1.0\n")
    result, _ = rows.measure(*_THREE, "--fw-timeout=6", fw=_FW)
    result.assert_outcomes(passed=5, failed=1)
    said = "fwbench: at test_it.py::*-inline-*-4] for * s; a case that hangs is ended by --fw-*"
    result.stdout.fnmatch_lines([said])


#: Workers that keep about one processor busy, whether or not they have the turn.
_ALWAYS_BUSY = """
import time
from fwbench.workers.process import WorkerProcess
WorkerProcess.use = lambda self: ((now_s := time.perf_counter()), 1.1 * now_s)
"""


def test_processors_are_counted_for_the_turns_of_each(rows: Project) -> None:
    """One that goes on while others have the turn has more than its thread."""
    rows.write("conftest.py", _ALWAYS_BUSY)
    result = rows.run(*_THREE, fw=_FW)
    result.assert_outcomes(failed=6)
    assert str(result.stdout).count("and 1 thread can take no more than") == 2 * 6
    alone = rows.run("--fw-size=4,8", "--fw-threads=1")
    alone.assert_outcomes(passed=2)  # they have the turn all the time


def test_rows_of_launches(rows: Project) -> None:
    """Each launch has its own turns."""
    _, records = rows.measure(*_THREE, "--fw-launches=2", fw=_FW)
    launches = [entry["extra_info"]["fwbench"]["launches"] for entry in records.values()]
    assert [len(each) for each in launches] == [2] * 6
    for number in (0, 1):
        rows_of_launch = [each[number]["turns"]["row"] for each in launches]
        assert sorted(map(rows_of_launch.count, {*rows_of_launch})) == [3, 3]


def test_rows_that_do_not_fit_into_memory(rows: Project) -> None:
    """Their cases are measured one by one, and it is said."""
    small = "import psutil\nof = psutil.virtual_memory()._replace(available=2**20)\n"
    rows.write("conftest.py", f"{small}psutil.virtual_memory = lambda: of\n")
    result, records = rows.measure(*_THREE, fw=_FW)
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["fwbench: 6 cases take no turns with others*memory that is free"])
    assert _turns(records) == {}


def test_several_threads_take_no_turns(rows: Project) -> None:
    _, records = rows.measure(*_THREE, "--fw-threads=2", fw=_FW)
    assert _turns(records) == {}


def test_limits_of_pytest_timeout_leave_no_time_to_wait(rows: Project) -> None:
    rows.write("conftest.py", "def pytest_configure(config):\n    config._env_timeout = 60.0\n")
    _, records = rows.measure(*_THREE, fw=_FW)
    assert _turns(records) == {}
