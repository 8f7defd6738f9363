"""Repositories to compare revisions of."""

from __future__ import annotations

import subprocess
from pathlib import Path

GIT = ("git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.org")


def run_git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit_all(folder: Path, **files: str) -> str:
    """Write files and commit everything; returns the commit."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", "a commit")
    return run_git(folder, "rev-parse", "HEAD")


def count_worktrees(root: Path) -> int:
    return run_git(root, "worktree", "list").count("\n") + 1
