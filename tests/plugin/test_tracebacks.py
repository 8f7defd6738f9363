"""Debuggers stop where the user's code is, in the process that has the terminal."""

from support.projects import Project

_TESTS = """
import pytest
from declared import double, doubling, wrong

def raising(x):
    raise ValueError("of the user's own")

broken = doubling("broken", raising)

remembered = []

def remembering(x):
    remembered.append(2.0 * x)
    return remembered[0]

stale = doubling("stale", remembering)

@pytest.mark.fwbench(double, wrong, broken, stale, sizes=4)
def test_it(case):
    case.measure()
"""


def test_pdb_stops_in_the_users_code(project: Project) -> None:
    """Without a word on isolation: in the test where fwbench has found what is wrong with it, be it
    before the rounds or after them, and in the function where the user's own code has raised."""
    project.write("test_it.py", _TESTS)
    for selected, message in (
        ("double or wrong", "E *"),
        ("stale", "E * a call on changed inputs *"),
    ):
        result = project.run("--pdb", "-k", selected, "-p", "no:randomly")
        result.assert_outcomes(passed=int("double" in selected), failed=1)
        result.stdout.fnmatch_lines(
            [
                "fwbench: * all frameworks in this process, *: for --pdb",
                message,
                "*PDB post_mortem*",
                "> *test_it.py(*)test_it()",
                "-> case.measure()",
            ]
        )
    result = project.run("--pdb", "-k", "broken")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["> *test_it.py(*)raising()", "-> raise ValueError(*"])


def test_what_only_shows_fixtures_starts_no_worker(project: Project) -> None:
    """--setup-plan shows those of a case as of any test, whatever the ini file asks for."""
    project.write("test_it.py", _TESTS)
    project.write("pytest.ini", "[pytest]\nfw_launches = 5\nfw_gate = 5%")
    result = project.run("--setup-plan", "-k", "double")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "  ignored with --setup-plan: fw_launches, fw_gate of the ini file",
            "*SETUP*F case*",
            "*test_it.py::test_it*double*",
        ]
    )
