"""Sessions whose launches are chosen by what has been measured: races and budgets."""

import pytest

from support.projects import Project, measuring

#: Two operations of two frameworks; pool's hyperbolic tangent fails in the second launch.
_RACE = measuring(
    "sigmoid, tanh, sizes=4",
    "from pathlib import Path",
    "from fwbench.workloads import sigmoid, tanh",
    body="""
        with open("order", "a") as file:
            print(case.cell.id, file=file)
        mine = Path("order").read_text().splitlines().count(case.cell.id)
        assert not (case.cell.id.startswith("tanh-pool") and mine == 2), "this went wrong"
        case.measure()
    """,
)

_ADDRESS = """\
    def address(self, array):
        return array.result().ctypes.data

"""

#: Whatever else the machine does: no launch is contended, and pool takes ten times as long.
_MADE_UP = """
from fwbench.gate import budget
from fwbench.records import launches
from fwbench.records.facts import Launch

def launch_of(entry):
    return Launch(launch=0, value_s=1e-5 if "pool" in entry["param"] else 1e-6)

launches.launch_of = launch_of
launches.is_contended = lambda launch: False
budget.in_turns = lambda *visits: []
"""

#: Two operations of one framework.
_ALONE = measuring("double, twice, sizes=4")

#: The same for pool, too, which does not say where its results lie. That they are computed, and no
#: views, would be told by declared floating-point operations.
_UNTOLD = measuring(
    "double, twice, sizes=4",
    "for operation in (double, twice):",
    '    operation.implement("pool")(lambda np: lambda x: 2.0 * x)',
)


@pytest.fixture
def racing(project: Project) -> Project:
    """A project in which numpy and pool race."""
    project.install_pool()
    # Its results are copies like NumPy's: otherwise they would not be the same work.
    pool = project.packages / "pool_framework.py"
    program = pool.read_text(encoding="utf-8").replace(
        "    def threads(", f"{_ADDRESS}    def threads("
    )
    pool.write_text(program, encoding="utf-8")
    project.write("test_it.py", _RACE)
    project.write("conftest.py", _MADE_UP)
    return project


def test_a_race_is_decided_by_signs_of_far_launches(racing: Project) -> None:
    result, records = racing.measure("--fw-race", fw="numpy,pool")
    result.assert_outcomes(passed=3, failed=1)
    measured = {name: len(entry["stats"]["data"]) for name, entry in records.items()}
    assert {name.split("-cpu")[0]: n for name, n in measured.items()} == {
        "sigmoid-numpy": 11,
        "sigmoid-pool": 11,
        "tanh-numpy": 2,
    }
    result.stdout.fnmatch_lines(
        [
            "*every case at least once*",
            "fwbench: launch 1: 4 cases",
            "fwbench: a launch of 4 cases took *; * are left",
            "fwbench: launch 2: 4 cases",
            "fwbench: launch 3: 2 cases",
            "*fwbench race*",
            "2 groups: 1 fastest, 1 undecided (a verdict is wrong *1% at most)",
            "fastest: numpy eager in 1",
            "tanh cpu *: undecided: numpy eager *: no rival is left: pool eager failed",
            "sigmoid cpu forward float32 4: fastest: numpy eager 1 us; pool eager 10x",
            "11 launches in * of 10 min",
            "*- fwbench -*",  # whose last line is the answer, by real times
        ]
    )
    facts = racing.session()
    sigmoid, tanh = facts["race"]["groups"]
    standings = [(c["name"], c["standing"], c["launches"]) for c in sigmoid["contestants"]]
    assert standings == [("numpy eager", "fastest", 11), ("pool eager", "slower", 11)]
    assert (sigmoid["verdict"], tanh["verdict"]) == ("fastest", "undecided")
    assert [c["why"] for c in tanh["contestants"]] == [None, "failed"]
    assert facts["budget"]["budget_s"] == 600
    assert facts["launches"]["launches"] == 1
    assert facts["fastest"] == {"race": "numpy eager for 1 of 2; 1 undecided"}


def test_an_interrupted_race_tells_what_it_knows(racing: Project) -> None:
    racing.write(
        "conftest.py",
        _MADE_UP
        + """
measured = []

def pytest_fwbench_launched(nodeid):
    measured.append(nodeid)
    if len(measured) == 5:
        raise KeyboardInterrupt
""",
    )
    result = racing.run("--fw-race", "--benchmark-json=measured.json", fw="numpy,pool")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*fwbench race*", "2 groups: 2 undecided *", "1 launch in * of 10 min"]
    )
    assert [group["verdict"] for group in racing.session()["race"]["groups"]] == ["undecided"] * 2


def test_other_work_is_no_rival(racing: Project) -> None:
    """A framework that does not say whether its results are copies is not compared with NumPy."""
    racing.install_pool()
    racing.write("test_it.py", _UNTOLD)
    result = racing.run("--fw-race", "--fw-threads=1", "-k", "double", fw="numpy,pool")
    result.assert_outcomes(passed=2, deselected=2)
    result.stdout.fnmatch_lines(
        ["fwbench: launch 1: 2 cases", "*fwbench race*", "no contestant *a rival*"]
    )
    result.stdout.no_fnmatch_line("*launch 2*")


def test_a_race_needs_rivals(project: Project) -> None:
    project.write("test_it.py", _ALONE)
    result = project.run("--fw-race")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = "there is one of each (numpy eager): add a framework or an execution"
    assert message in str(result.stderr)


def test_a_budget_says_what_is_uncertain_and_what_a_launch_takes(project: Project) -> None:
    """A budget too short for two launches: said after the first one; before, the next time."""
    project.write("test_it.py", _ALONE)
    result, records = project.measure("--fw-budget=0.1s")
    result.assert_outcomes(passed=2)
    assert [len(entry["stats"]["data"]) for entry in records.values()] == [1, 1]
    result.stdout.fnmatch_lines(
        [
            "*fwbench budget*",
            "1 launch in * of 0.1 s",
            "a budget of 0.1 s is too short to measure anything twice: one launch of 2 cases *",
            "the time of 2 of 2 cases is not known to 3%: *(a single launch)*",
        ]
    )
    budget = project.session()["budget"]
    assert [case["uncertainty"] for case in budget["unsettled"]] == [None, None]
    repeated = project.run("--fw-budget=0.1s")
    assert repeated.ret == pytest.ExitCode.USAGE_ERROR
    message = "the budget of 0.1 s is shorter than one launch of 2 cases, which took "
    assert message in str(repeated.stderr)
    # A launch may take less with other options.
    other = project.run("--fw-budget=0.1s", "--benchmark-max-time=0.02")
    other.assert_outcomes(passed=2)


def test_a_budget_is_spent_on_fresh_launches(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cases once; then again, until launches agree, which these do at once.

    What is said of it is no wider than the terminal, which pytest takes for one of 80 columns.
    """
    monkeypatch.setenv("COLUMNS", "36")
    project.write("test_it.py", _ALONE)
    project.write("conftest.py", _MADE_UP)
    result, records = project.measure("--fw-budget=1h")
    result.assert_outcomes(passed=2)
    assert [len(entry["stats"]["data"]) for entry in records.values()] == [2, 2]
    result.stdout.fnmatch_lines(
        [
            "*fwbench budget*",
            "2 launches in * of 1 h",
            "the time of each of 2 cases is known",
            "  to 3%",
        ]
    )
    assert project.session()["budget"]["unsettled"] == []
