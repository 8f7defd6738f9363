"""pytest-rerunfailures: a case that fails is run again, and is recorded once."""

import pytest

from fwbench.plugin import host
from fwbench.records.journal import recover
from support.neighbours import Beside
from support.projects import Project

_FLAKY = """
from pathlib import Path
import pytest
from declared import double, wrong

def fails_once(name):
    path = Path(name)
    if not path.exists():
        path.touch()
        pytest.fail("the first time")

@pytest.fixture
def leaving(request):
    yield
    fails_once(f"left-{request.node.originalname}")

@pytest.mark.fwbench(double, sizes=(4,))
def test_well(case):
    case.measure()

@pytest.mark.fwbench(double, sizes=(4,))
def test_measured(case):
    case.measure()
    fails_once("measured")

@pytest.mark.fwbench(double, sizes=(4,))
def test_torn_down(leaving, case):
    case.measure()

@pytest.mark.fwbench(wrong, sizes=(4,))
def test_wrong(case):
    case.measure()

def test_plain(leaving, benchmark):
    benchmark(int)
"""

_RECORDED = ["test_well", "test_measured", "test_torn_down", "test_plain"]


def _names(entries: list[dict[str, str]]) -> list[str]:
    return [entry["name"].split("[")[0] for entry in entries]


#: pytest-rerunfailures counts a test that passed and was torn down badly as passed, too.
_ONCE = {"passed": 6, "failed": 1, "rerun": 4}
#: What is reported of a case with launches is the last of them.
_TWICE = {"passed": 5, "failed": 1, "rerun": 2}


@pytest.mark.parametrize(
    ("argument", "outcomes"),
    [
        ("--fw-launches=2", _TWICE),
        ("--fw-isolation=process", _ONCE),
        ("--fw-isolation=none", _ONCE),
    ],
)
def test_reruns(project: Project, beside: Beside, argument: str, outcomes: dict[str, int]) -> None:
    """However a case has failed first, JSON, journal and closing section have its last run."""
    beside("rerunfailures")
    project.write("test_it.py", _FLAKY)
    result, _ = project.measure("--reruns=1", argument)
    assert result.parseoutcomes() == outcomes
    assert _names(project.entries("measured.json")) == _RECORDED
    (journal,) = project.path.glob(".fwbench/journal/*.jsonl")
    recovered = recover(journal, host.with_statistics).run["benchmarks"]
    assert sorted(_names(recovered)) == sorted(_RECORDED)
