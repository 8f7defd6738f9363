"""A project: where its root is, and its folder ``.fwbench``, which version control leaves out."""

from contextlib import suppress
from pathlib import Path


def own_folder(root: Path, name: str) -> Path:
    """The folder of a project for one kind of fwbench's files: ``journal``, ``baseline``, ..."""
    return root / ".fwbench" / name


def make_own_folder(folder: Path) -> None:
    """Create such a folder, unless it exists, and keep it out of version control.

    Raises:
        OSError: it cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / ".gitignore").write_text("*\n", encoding="utf-8")


#: Files by which a project's root is known, as pytest knows it.
_ROOT_FILES = ("pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")


def project_root(start: Path) -> Path:
    """The project around a folder: the nearest one that has files by which pytest knows a root."""
    start = start.absolute()
    return next((folder for folder in (start, *start.parents) if root_file(folder)), start)


def root_file(folder: Path) -> Path | None:
    """The file by which a folder is known to be a project's root; None if it has none."""
    return next(filter(_is_of_root, (folder / name for name in _ROOT_FILES)), None)


def _is_of_root(file: Path) -> bool:
    """True if a file marks a root; those of other tools do if they speak of pytest."""
    if not file.is_file():
        return False
    if file.name not in ("tox.ini", "setup.cfg"):
        return True
    with suppress(OSError, UnicodeDecodeError):
        return "pytest]" in file.read_text(encoding="utf-8")
    return False


def rooted(root: Path, tree: Path) -> list[str]:
    """The arguments of pytest for a repository within a project: a checkout is not within it.

    Both sides have the project's settings, and node ids that begin at the root of the repository.

    Args:
        tree: the root itself, or a checkout of it.
    """
    project = project_root(Path())
    file = root_file(project)
    if file is None or project.is_relative_to(root):
        return []
    return [f"--rootdir={tree}", "-c", str(file)]
