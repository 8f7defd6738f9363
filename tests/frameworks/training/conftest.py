"""What the tests of training with real frameworks share."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fwbench.workloads import data
from fwbench.workloads.data import Found
from support.projects import Project
from support.real_data import REAL


@pytest.fixture(scope="module")
def real() -> Callable[[str], Found]:
    """Finds real data, or skips the test."""

    def find(name: str) -> Found:
        for folder in filter(None, REAL.split(os.pathsep)):
            found = data.find(name, Path(folder))
            if found.source == "real":
                return found
        pytest.skip(f"no real {name} here: name its folder in {data.VARIABLE}")

    return find


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project where no data is found that the test does not name."""
    for variable in (data.VARIABLE, "KERAS_HOME", "MXNET_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return project
