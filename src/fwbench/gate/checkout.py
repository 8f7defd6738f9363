"""Revisions checked out next to the working tree, as long as they are measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fwbench.errors import ComparisonError
from fwbench.processes import command, owned, scratch
from fwbench.processes.interruption import held

#: Beside a checkout: the path of the repository that it is of.
_REPOSITORY = "repository"

#: Where a repository keeps what it knows of its checkouts, a folder each.
_WORKTREES = "worktrees"


def git(folder: Path, *arguments: str) -> str:
    """What git answers.

    Args:
        folder: in which it is asked.
        arguments: of git.

    Raises:
        ComparisonError: it fails, or is not there.
    """
    try:
        return _answer(command.ask(["git", *arguments], folder=folder), arguments[0])
    except OSError as error:
        raise ComparisonError(f"cannot run git: {error.strerror}") from error


def _answer(done: command.Captured, what: str) -> str:
    if done.status:
        raise ComparisonError(done.errors.strip() or f"git {what} failed")
    return done.output.strip()


@contextmanager
def checked_out(root: Path, commit: str) -> Iterator[Path]:
    """A commit, checked out in a folder that goes again, as does all that git notes of it.

    Args:
        root: of the repository.
        commit: as git takes it.

    Raises:
        ComparisonError: it cannot be checked out.
    """
    repository = (root / git(root, "rev-parse", "--git-common-dir")).resolve()
    _forget_lost(repository)
    with scratch.folder() as folder, ExitStack() as stack:
        (folder / _REPOSITORY).write_text(str(repository), encoding="utf-8")
        # git calls its notes like the folder: by this name they are found in whatever state.
        checkout = folder / folder.name
        stack.callback(_forget, repository, folder.name)
        add = ["git", "worktree", "add", "--detach", str(checkout), commit]
        _answer(command.capture(add, folder=root), "worktree add")
        notes = owned.take(repository / _WORKTREES / folder.name)
        if notes is not None:
            stack.enter_context(notes)
        yield checkout


def remove_abandoned() -> None:
    """Remove the temporary folders of killed commands, with what git notes of checkouts in them."""
    for folder in scratch.abandoned():
        with suppress(OSError):
            _forget(Path((folder / _REPOSITORY).read_text(encoding="utf-8")), folder.name)


def _forget_lost(repository: Path) -> None:
    """Remove git's notes of checkouts whose folders have gone, as when a machine is restarted."""
    for notes in (repository / _WORKTREES).glob(f"{scratch.PREFIX}*"):
        is_there = (Path(tempfile.gettempdir()) / notes.name).exists()
        if not is_there and (lock := owned.take(notes)) is not None:
            with lock:
                _forget(repository, notes.name)


def _forget(repository: Path, name: str) -> None:
    """Remove what git notes of a checkout.

    ``git worktree remove`` does the same, but not after ``git worktree add`` was killed.

    Args:
        repository: the folder ``.git``.
        name: of the checkout.
    """
    with held():
        scratch.remove(repository / _WORKTREES / name)
        with suppress(OSError):  # there are others
            (repository / _WORKTREES).rmdir()
