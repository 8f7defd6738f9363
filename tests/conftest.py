"""What the tests share."""

import pytest
from projects import CASES, Project

pytest_plugins = ["pytester"]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without tests yet."""
    return Project(pytester, monkeypatch)


@pytest.fixture
def cases(project: Project) -> Project:
    """A project with a few cases and an ordinary test, in one file."""
    project.write("test_it.py", CASES)
    return project
