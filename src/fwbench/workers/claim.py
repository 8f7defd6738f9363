"""Environments that are being made: by one process at a time, as a whole or not at all.

Whoever makes an environment owns its folder meanwhile. The folder appears with a mark in it, so
that what a killed process leaves is known for what it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fwbench.errors import InstallationError, UsageError
from fwbench.processes import owned, scratch
from fwbench.processes.interruption import held
from fwbench.processes.owned import Owned
from fwbench.workers.named import FACTS

#: Marks an environment that is not complete, and names the process that makes it.
_MAKER = "fwbench-maker"

#: What the names of folders begin with that are not an environment's yet, or not any more.
_UNNAMED = ".fwbench-unnamed-"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """A new folder, owned; it is removed again if what fills it fails or is interrupted.

    Raises:
        UsageError: another process is filling it, or it holds something else.
        InstallationError: it cannot be made.
    """
    owner = None
    try:
        with held():
            owner = _claim(folder)
        yield
        (folder / _MAKER).unlink()
    except BaseException:
        if owner is not None:
            with held():
                discard(folder)
        raise
    finally:
        if owner is not None:
            owner.release()


def _claim(folder: Path) -> Owned:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        ignored = folder.parent / ".gitignore"
        if not ignored.exists():  # what is written here is of this machine: no version control
            ignored.write_text("*\n", encoding="utf-8")
        if folder.name in unfinished(folder.parent) and (left := owned.take(folder)) is not None:
            with left:
                discard(folder)
        new = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=folder.parent))
        (new / _MAKER).write_text(str(os.getpid()), encoding="ascii")
    except OSError as error:
        raise InstallationError(f"cannot make {folder}: {error.strerror}") from error
    owner = owned.take(new)
    if owner is None:
        scratch.remove(new)
        raise InstallationError(f"cannot lock {new}: its file system must have locks (flock)")
    try:
        new.rename(folder)
    except OSError as error:  # there is one already, and it is not empty
        owner.release()
        scratch.remove(new)
        raise UsageError(problem(folder)) from error
    return owner


def discard(folder: Path) -> None:
    """Remove the folder of an environment, which this process owns: all of it at once.

    Raises:
        InstallationError: it cannot be removed.
    """
    try:
        # By this name what a kill leaves of it is nobody's environment.
        unnamed = folder.rename(tempfile.mkdtemp(prefix=_UNNAMED, dir=folder.parent))
    except OSError as error:
        raise InstallationError(f"cannot remove {folder}: {error.strerror}") from error
    scratch.remove(unnamed)
    if unnamed.exists():
        raise InstallationError(f"cannot remove all of {unnamed}, which was {folder.name}")


def remove_abandoned(envs: Path) -> None:
    """Remove what killed processes were about to make or to remove.

    Args:
        envs: the folder of all environments.
    """
    for unnamed in envs.glob(f"{_UNNAMED}*"):
        if (owner := owned.take(unnamed)) is not None:
            with owner:
                scratch.remove(unnamed)


def unfinished(envs: Path) -> list[str]:
    """The names of environments that are being made, or that a killed process has left.

    Args:
        envs: the folder of all environments.
    """
    makers = envs.glob(f"[!.]*/{_MAKER}")
    return sorted(each.parent.name for each in makers if not each.with_name(FACTS).exists())


def problem(folder: Path) -> str:
    """Why a folder is not free, and what to do.

    Args:
        folder: that an environment of its name would have.
    """
    name, maker = folder.name, folder / _MAKER
    if (folder / FACTS).exists():
        return (
            f"there is an environment {name!r} already (fwbench env list); choose another name, or "
            f"remove it first: fwbench env remove {name}"
        )
    if not maker.is_file():
        return f"{folder} is there already and is not an environment; choose another name"
    owner = owned.take(folder)
    if owner is None:
        return f"{name} is being made by process {_number(maker)}; wait for it"
    owner.release()
    return f"{name} is not complete, its fwbench env add was killed; fwbench env remove {name}"


def _number(maker: Path) -> str:
    try:
        return maker.read_text(encoding="ascii")
    except OSError:  # it has just been completed
        return "?"
