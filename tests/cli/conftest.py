"""Fixtures of the tests of commands."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution of this checkout."""
    return _build(Path(__file__).parents[2], tmp_path_factory.mktemp("distributions"))


@pytest.fixture(scope="session")
def extras_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = _build(Path(__file__).parents[2] / "extras", tmp_path_factory.mktemp("extras"))
    (built,) = folder.glob("*.whl")
    return built


def _build(project: Path, folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (built,) = distributions.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (built,) = distributions.glob("*.tar.gz")
    return built
