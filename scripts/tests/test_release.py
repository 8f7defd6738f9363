"""The workflow that publishes a release: what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

_ROOT = Path(__file__).parents[2]
_WORKFLOW = _ROOT / ".github" / "workflows" / "release.yml"
_UNNAMED = "OWNER/fwbench"
_NAMED = "me/fwbench"


#: What names the repository: metadata, and what people read.
_DOCUMENTS = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Metadata and documents as they are here, and what names the repository in them."""
    for name in ("pyproject.toml", *_DOCUMENTS):
        shutil.copy(_ROOT / name, tmp_path)
    for name in ("docs", "scripts", "src/fwbench/records/schemas"):
        shutil.copytree(_ROOT / name, tmp_path / name)
    return tmp_path


def _rename(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "scripts/repository.py", *arguments],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )


def _naming(folder: Path, repository: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.suffix in (".json", ".md", ".toml")]
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
    named = _rename(checkout, _NAMED)
    assert named.returncode == 0, named.stderr
    assert not _is_refused(checkout)
    naming = _naming(checkout, _NAMED)
    written = {str(path.relative_to(checkout)) for path in naming}
    assert written == {*named.stdout.split()}
    assert written >= {"pyproject.toml", "CONTRIBUTING.md", "docs/installing.md", "docs/ci.md"}
    for path in naming:
        _replace(path, _NAMED, _UNNAMED)
        assert _is_refused(checkout)
        _replace(path, _UNNAMED, _NAMED)


def test_another_repository_cannot_release_it(checkout: Path) -> None:
    """The metadata lead to the one that they name, until they are told of the other."""
    _rename(checkout, _NAMED)
    assert _is_refused(checkout, "you/fork.of-fwbench")
    _rename(checkout, "you/fork.of-fwbench")
    assert _naming(checkout, _NAMED) == []
    assert not _is_refused(checkout, "you/fork.of-fwbench")


@pytest.mark.parametrize("arguments", [(), ("fwbench",), ("https://github.com/me/fwbench",)])
def test_what_names_no_repository_is_refused(checkout: Path, arguments: tuple[str, ...]) -> None:
    before = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    named = _rename(checkout, *arguments)
    assert named.returncode == 2
    assert "scripts/repository.py OWNER/NAME" in named.stderr
    assert (checkout / "pyproject.toml").read_text(encoding="utf-8") == before
