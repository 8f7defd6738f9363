"""Fixtures of the tests of environments."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwbench.workers import install
from support.venvs import Maker


@pytest.fixture
def env(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Maker:
    """A project without environments, on a machine without uv."""
    made = Maker(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{made.programs}{os.pathsep}{os.defpath}")
    monkeypatch.setattr(
        install, "sysconfig", SimpleNamespace(get_path=lambda _: str(made.programs))
    )
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setattr("tempfile.tempdir", str(made.temporary))
    return made
