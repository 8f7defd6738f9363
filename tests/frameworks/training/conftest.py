"""Fixtures of the tests of training with real frameworks."""

import pytest

from fwbench.workloads import data
from support.projects import Project


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project where no data is found that the test does not name."""
    for variable in (data.VARIABLE, "KERAS_HOME", "MXNET_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return project
