"""The workflow that publishes a release: what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

_ROOT = Path(__file__).parents[1]
_WORKFLOW = _ROOT / ".github" / "workflows" / "release.yml"
_UNNAMED = "OWNER/fwbench"
_NAMED = "me/fwbench"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Metadata and documentation as they are in a repository of mine."""
    shutil.copy(_ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(_ROOT / "docs", tmp_path / "docs")
    metadata = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))
    repository = metadata["project"]["urls"]["Homepage"].removeprefix("https://github.com/")
    for path in _naming(tmp_path, repository):
        _replace(path, repository, _NAMED)
    return tmp_path


def _naming(folder: Path, repository: str) -> list[Path]:
    """The files that name a repository."""
    files = [path for path in folder.rglob("*") if path.suffix in (".md", ".toml")]
    return [path for path in files if repository in path.read_text(encoding="utf-8")]


def _replace(path: Path, repository: str, other: str) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(repository, other), encoding="utf-8")


def _is_refused(checkout: Path, repository: str = _NAMED) -> bool:
    steps = yaml.safe_load(_WORKFLOW.read_text(encoding="utf-8"))["jobs"]["build"]["steps"]
    (script,) = [step["run"] for step in steps if _UNNAMED in step.get("run", "")]
    done = subprocess.run(
        ["bash", "-e", "-c", script],  # as GitHub runs a step that names no shell
        cwd=checkout,
        env={
            "PATH": os.environ["PATH"],
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": repository,
        },
        check=False,
    )
    return done.returncode != 0


def test_a_release_names_its_repository(checkout: Path) -> None:
    """In all files; one in which the name is still missing is enough to refuse it."""
    assert not _is_refused(checkout)
    naming = _naming(checkout, _NAMED)
    assert {path.name for path in naming} >= {"pyproject.toml", "installing.md", "ci.md"}
    for path in naming:
        _replace(path, _NAMED, _UNNAMED)
        assert _is_refused(checkout)
        _replace(path, _UNNAMED, _NAMED)


def test_another_repository_cannot_release_it(checkout: Path) -> None:
    """The metadata lead to the one that they name."""
    assert _is_refused(checkout, "you/fwbench")
