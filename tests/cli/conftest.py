"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.projects import Project
from support.suites import Suite


@pytest.fixture
def suite(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A repository with a suite of two cases and one commit."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    return Suite(project, temporary)
