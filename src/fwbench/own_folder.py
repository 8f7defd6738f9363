"""The folder ``.fwbench`` of a project: what is of this machine, and of no version control."""

from __future__ import annotations

from pathlib import Path


def of(root: Path, name: str) -> Path:
    """Where one kind of things lies.

    Args:
        root: of the project.
        name: of the kind.
    """
    return root / ".fwbench" / name


def make(folder: Path) -> None:
    """Make such a folder; it may be there.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / ".gitignore").write_text("*\n", encoding="utf-8")
