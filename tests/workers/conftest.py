"""Fixtures of the tests of environments."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwbench.workers import install
from support.venvs import Maker, make


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an interpreter with fwbench, to be copied."""
    folder = tmp_path_factory.mktemp("interpreter")
    make(folder)
    return folder


@pytest.fixture
def env(
    tmp_path: Path,
    interpreter: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Maker:
    """A project without environments, on a machine without uv."""
    made = Maker(tmp_path, interpreter, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{made.programs}{os.pathsep}{os.defpath}")
    monkeypatch.setattr(
        install, "sysconfig", SimpleNamespace(get_path=lambda _: str(made.programs))
    )
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setattr("tempfile.tempdir", str(made.temporary))
    return made
