"""What the tests share."""

import os

import pytest

from support.projects import CASES, Project

pytest_plugins = ["pytester"]

# Tests share a machine with others: threads that wait actively for a processor that another
# process has are slower by an order of magnitude. OpenMP reads this when a framework is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The named environments of whoever runs the tests are none of theirs.
os.environ.pop("FWBENCH_ENVS", None)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this session was started with is no business of those that tests start."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without tests yet."""
    return Project(pytester, monkeypatch)


@pytest.fixture
def cases(project: Project) -> Project:
    """A project with a few cases and an ordinary test, in one file."""
    project.write("test_it.py", CASES)
    return project
