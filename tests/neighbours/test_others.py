"""pytest-codspeed, pytest-cov, pytest-randomly, pytest-repeat, and pytest-benchmark's groups."""

import json
from itertools import product
from unittest.mock import Mock

import pytest

from fwbench.plugin import host
from support.neighbours import Beside
from support.projects import Project, measuring
from support.tables import tabled

_MIXED = f"""
{measuring("double")}
def test_plain(benchmark):
    open("ran", "w").close()
    benchmark(int)
"""


@pytest.fixture
def mixed(project: Project) -> Project:
    """Two cases, and a benchmark that is not fwbench's."""
    project.write("test_it.py", _MIXED)
    return project


@tabled
def test_without_pytest_benchmark(
    mixed: Project, beside: Beside, argument: str, reason: str
) -> None:
    """Cases are refused before anything runs, with what would do."""
    beside("codspeed")
    refused = mixed.run_exactly("--fw=numpy", argument)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    output = str(refused.stderr) + str(refused.stdout)
    assert f"ERROR: cases need pytest-benchmark, and {reason}" in output
    assert "INTERNALERROR" not in output
    assert not (mixed.path / "ran").exists()


def test_forked(mixed: Project) -> None:
    """Cases have processes of their own; pytest-forked has this option, and forks tests."""
    option = "parser.addoption('--forked', action='store_true')"
    mixed.write("conftest.py", f"def pytest_addoption(parser): {option}")
    refused = mixed.run_exactly("--fw=numpy", "--forked")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "pytest-forked would fork them once more: leave --forked out" in str(refused.stderr)


def test_codspeed_without_cases(mixed: Project, beside: Beside) -> None:
    """It may run whatever is not a case."""
    beside("codspeed")
    others = mixed.run("--codspeed", "-m", "not fwbench")
    others.assert_outcomes(passed=1, deselected=2)
    assert others.ret == pytest.ExitCode.OK
    assert (mixed.path / "ran").exists()


_COVERED = """
from declared import doubling

def compute(x):
    return x + x

def never():
    return 1

covered = doubling("covered", compute, sizes=(4,))
"""


@pytest.mark.usefixtures("started")  # coverage begins where an interpreter does
def test_coverage(project: Project, beside: Beside) -> None:
    """pytest-cov measures what workers run where coverage measures subprocesses."""
    beside("pytest_cov")
    project.write("covered.py", _COVERED)
    project.write("test_it.py", measuring("covered", "from covered import covered"))
    project.write(".coveragerc", "[run]\npatch = subprocess\n")
    project.write("pytest.ini", "[pytest]\npythonpath = .\n")
    result = project.run("--cov=covered", "--cov-report=json:coverage.json")
    result.assert_outcomes(passed=1)
    covered = json.loads((project.path / "coverage.json").read_text())
    (file,) = covered["files"].values()
    inside = _COVERED.splitlines().index("    return x + x") + 1
    assert inside in file["executed_lines"]
    assert inside + 3 in file["missing_lines"]
    assert "pytest-cov does not see" not in str(result.stdout)
    left = sorted(path.name for path in project.path.glob(".coverage*"))
    assert left == [".coverage", ".coveragerc"]


@pytest.mark.parametrize(
    ("active", "variable", "notices"),
    [("_cov", None, 1), ("_cov", "COVERAGE_PROCESS_CONFIG", 0), ("_cov_contexts", None, 0)],
)
def test_coverage_of_this_process_alone(
    monkeypatch: pytest.MonkeyPatch, active: str, variable: str | None, notices: int
) -> None:
    """Where coverage does not measure subprocesses the header says so."""
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "settings")
    config = Mock(**{"pluginmanager.hasplugin": active.__eq__})
    lines = host.notices(config)
    assert len(lines) == notices
    assert all("add patch = subprocess" in line for line in lines)


def test_random_order_repeats_and_groups(mixed: Project, beside: Beside) -> None:
    """Each repetition is a record of its own; a test without a parameter has a group of its own."""
    beside("randomly", "repeat")
    result, _ = mixed.measure(
        *("--count=2", "-p", "randomly", "-p", "no:cacheprovider"),
        "--benchmark-group-by=param:framework",
    )
    result.assert_outcomes(passed=6)
    names = sorted(entry["name"] for entry in mixed.entries("measured.json"))
    assert names == sorted(
        [
            *(f"test_it[double-numpy-cpu-eager-forward-float32-{s}-{n}-2]" for s, n in _EACH),
            *(f"test_plain[{n}-2]" for n in (1, 2)),
        ]
    )
    result.stdout.fnmatch_lines(["*benchmark 'framework=none': 2 tests*"])
    result.stdout.fnmatch_lines(["*benchmark 'framework=numpy': 4 tests*"])


_EACH = [*product((4, 8), (1, 2))]
